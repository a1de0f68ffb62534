//! `invoke_model.v1`: assembles the context, asks the model, streams its words, and keeps the answer as facts.

mod answer_stream;
mod call_ids;
mod conversation;
mod history_limit;
mod logged;
mod normalise;
mod outbound;
mod plan;
mod scrubbed_text;
mod summary;

use std::sync::Arc;

use harness_agent::{
    AnswerText, InvokeModelInput, ItemDraft, ModelAnswer, ModelOutcome,
    context::{AssembledContext, ContextParts, assemble, estimate_tokens},
};
use harness_model::{Content, ItemBody, ModelOutput, StoredItem};
use harness_ports::{ActivityFailure, ModelError, ModelErrorKind, ModelRequest, RequestMeta};

use crate::{
    activities::Host,
    blocks::{self, Keep},
    failure,
};
use answer_stream::{AnswerStream, Streamed};
use conversation::Conversation;
use scrubbed_text::ScrubbedText;

/// One execution.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) input: InvokeModelInput,
    /// Beginning of the keys under which chunks are published; no other execution has the same.
    pub(crate) chunk_key: String,
}

pub(crate) async fn run(host: &Host, call: Call) -> Result<ModelOutcome, ActivityFailure> {
    let (store, input) = (&*host.deps.store, &call.input);
    let skills = input
        .skills
        .iter()
        .map(|skill| async { Ok((skill.name.clone(), blocks::text(store, &skill.body).await?)) });
    let skills = blocks::all(skills.collect());
    let (conversation, skills, task) =
        futures::try_join!(Conversation::load(store, input), skills, logged::task_facts(store, input))?;
    let context = assembled(host, input, &conversation, &skills);
    let info = host.deps.provider.info_for(input.model.as_deref());
    let budget_tokens = info.context_window_tokens.min(host.deps.context.turn_budget_tokens);
    let estimate_tokens = estimate_tokens(context.chars, input.measured);
    if estimate_tokens > budget_tokens {
        return Ok(ModelOutcome::OverBudget { estimate_tokens, budget_tokens });
    }
    warn_when_nearly_full(host, input, estimate_tokens, budget_tokens);
    let context_chars = context.chars;
    let message_text = task.message_text.unwrap_or_else(|| conversation.last_words());
    let request = request(host, input, context, &message_text);
    let text = ScrubbedText::new(&host.deps.redactor, task.logged);
    let streaming = AnswerStream {
        store: &host.deps.store,
        clock: &*host.deps.clock,
        task_id: &input.task_id,
        artifact_id: &input.artifact_id,
        chunk_key: &call.chunk_key,
    };
    let streamed = streaming.run(host.deps.provider.stream_attempt(request, input.attempt), text).await;
    let streamed = streamed.and_then(not_empty);
    let streamed = streamed.map_err(|error| failure::of_model(&error, &info, &host.deps.redactor))?;
    let answer = keep(host, input, &conversation, streamed, context_chars).await?;
    Ok(ModelOutcome::Answered(Box::new(answer)))
}

fn assembled(
    host: &Host,
    input: &InvokeModelInput,
    conversation: &Conversation,
    skills: &[(String, String)],
) -> AssembledContext {
    assemble(&ContextParts {
        prompt: &host.deps.prompt,
        agents: &host.deps.agents_roster,
        skills_index: &host.deps.skills.index(),
        skills,
        agent_id: &input.agent_id,
        extension: &input.extension,
        state: input.state,
        summary: None,
        items: &conversation.items,
        tools_chars: host.registry.chars(),
    })
}

/// Nothing is compacted yet: a conversation that comes near its end is at least said so.
fn warn_when_nearly_full(host: &Host, input: &InvokeModelInput, estimate_tokens: u64, budget_tokens: u64) {
    if estimate_tokens as f64 > host.deps.context.compaction_fraction * budget_tokens as f64 {
        let task_id = &input.task_id;
        tracing::warn!(%task_id, estimate_tokens, budget_tokens, "the context budget is nearly used up");
    }
}

fn request(
    host: &Host,
    input: &InvokeModelInput,
    context: AssembledContext,
    message_text: &str,
) -> ModelRequest {
    let redactor = &host.deps.redactor;
    ModelRequest {
        model: input.model.clone(),
        reasoning_effort: input.reasoning_effort.clone(),
        instructions: redactor.text(&context.instructions),
        input: outbound::redacted(context.input, redactor),
        tools: Arc::clone(host.registry.definitions()),
        response_format: None,
        cache_key: input.task_id.to_string(),
        max_output_tokens: host.deps.context.max_output_tokens,
        meta: RequestMeta {
            task_id: input.task_id.clone(),
            turn: input.turn,
            message_id: input.latest_message.clone(),
            message_text: redactor.text(message_text),
        },
    }
}

/// A provider reports an empty answer as an error; one that does not must not end a turn in silence.
fn not_empty(streamed: Streamed<'_>) -> Result<Streamed<'_>, ModelError> {
    let output = &streamed.output;
    if output.text.is_empty() && output.calls.is_empty() && output.refusal.is_none() {
        return Err(ModelError::new(ModelErrorKind::Empty, "the model answered nothing at all"));
    }
    Ok(streamed)
}

/// Keeps everything the answer consists of in one commit.
async fn keep(
    host: &Host,
    input: &InvokeModelInput,
    conversation: &Conversation,
    streamed: Streamed<'_>,
    context_chars: u64,
) -> Result<ModelAnswer, ActivityFailure> {
    let mut keep = Keep::of(&input.task_id);
    let output = normalise::normalised(streamed.output, &host.deps.redactor);
    let answer = answer_text(&output, streamed.text, &mut keep);
    let calls = plan::plan(&output.calls, &host.registry, &host.deps.redactor, &mut keep);
    let (finish, usage) = (output.finish.clone(), output.usage);
    let model = format!("{}:{}", output.provider, output.model);
    let item = StoredItem::Model(output);
    let mut answer = ModelAnswer {
        manifest: conversation.extended(input, &mut keep)?,
        item: ItemDraft { chars: item.chars(), body: ItemBody::Block(keep.json(&item)?) },
        answer,
        calls,
        finish,
        usage,
        model,
        context_chars,
    };
    history_limit::apply(&mut answer);
    keep.commit(&*host.deps.store, &*host.deps.clock).await?;
    Ok(answer)
}

/// The words of the answer, or those of a refusal, and what subscribers have seen of them.
fn answer_text(output: &ModelOutput, text: ScrubbedText<'_>, keep: &mut Keep) -> Option<AnswerText> {
    let whole =
        if output.text.is_empty() { output.refusal.as_deref().unwrap_or_default() } else { &output.text };
    let begun = text.is_begun();
    if whole.is_empty() && !begun {
        return None;
    }
    // An earlier try may have streamed words that this answer does not have: they are taken back by an empty text.
    let rest = text.finish(whole);
    let mut content = |text: &str| match text {
        "" => Content::Inline(String::new()),
        text => Content::Block(keep.bytes(text.to_owned())),
    };
    Some(AnswerText { text: content(whole), streamed: rest.streamed, tail: content(&rest.tail) })
}
