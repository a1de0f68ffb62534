//! The model answered, or could not be asked because the context is too large.

use harness_model::{ArtifactChange, ContentPart, Finish, Lifecycle, StatusChange, TaskState, Usage, codes};

use super::{
    apply::Step,
    publishing::Publication,
    state::{CallProgress, CallSlot, Phase, TaskData, ToolRound},
    tool_ended, turn,
};
use crate::{AnswerText, CallAction, Measured, ModelAnswer, ModelOutcome, PlannedCall};

/// Takes the answer into the conversation and begins its calls, or ends the turn.
pub(super) fn apply(step: &mut Step<'_>, outcome: ModelOutcome) {
    match outcome {
        ModelOutcome::Answered(answer) => answered(step, *answer),
        ModelOutcome::OverBudget { estimate_tokens, budget_tokens } => {
            let message = format!(
                "the conversation needs about {estimate_tokens} tokens and may have {budget_tokens}; raise \
                 context.turn_budget_tokens or start a new task"
            );
            turn::fail(step, codes::CONTEXT_OVER_BUDGET.as_str(), &message);
        }
    }
}

fn answered(step: &mut Step<'_>, answer: ModelAnswer) {
    let data = &mut *step.data;
    data.manifest = Some(answer.manifest);
    data.fresh.clear();
    data.measured =
        answer.usage.input.map(|input_tokens| Measured { input_tokens, chars: answer.context_chars });
    count(data, &answer.model, answer.usage);
    data.remember(answer.item);
    let text = answer.answer.as_ref().map(|answer| answer.text.clone());
    if let Some(answer) = answer.answer {
        publish_rest(step, answer);
    }
    if !answer.calls.is_empty() {
        return begin_calls(step, answer.calls);
    }
    if answer.finish == Finish::Refusal && step.data.lifecycle == Lifecycle::Delegated {
        let mut status = StatusChange::to(TaskState::Failed);
        status.text.clone_from(&text);
        return turn::answered_with(step, text, status);
    }
    turn::answered(step, text);
}

/// Adds what a call used.
fn count(data: &mut TaskData, model: &str, call: Usage) {
    let usage = &mut data.usage;
    let first = usage.calls == 0;
    usage.calls += 1;
    let (Some(input), Some(output)) = (call.input, call.output) else {
        usage.uncounted_calls += 1;
        usage.cost_micro_usd = None;
        return;
    };
    let cached = call.cached.unwrap_or(0);
    usage.input_tokens = usage.input_tokens.saturating_add(input);
    usage.cached_tokens = usage.cached_tokens.saturating_add(cached);
    usage.output_tokens = usage.output_tokens.saturating_add(output);
    let before = if first { Some(0) } else { usage.cost_micro_usd };
    let cost = data.settings.prices.get(model).map(|price| price.cost(input, cached, output));
    usage.cost_micro_usd = before.zip(cost).map(|(before, cost)| before.saturating_add(cost));
}

/// The part of the answer that subscribers have not seen; it completes the artifact.
fn publish_rest(step: &mut Step<'_>, answer: AnswerText) {
    let artifact_id = turn::answer_artifact(step.data.turn);
    step.publish(Publication::artifact(ArtifactChange {
        name: Some(artifact_id.to_string()),
        artifact_id,
        description: None,
        parts: vec![ContentPart::text(answer.tail)],
        append: answer.streamed,
        last_chunk: true,
    }));
}

fn begin_calls(step: &mut Step<'_>, calls: Vec<PlannedCall>) {
    let repeatable = |call: &PlannedCall| match call.action {
        CallAction::Tool { idempotent, .. } => idempotent,
        CallAction::Intrinsic(_) | CallAction::Refused(_) => true,
    };
    let parallel = calls.iter().all(repeatable);
    let slot = |call| CallSlot {
        call,
        progress: CallProgress::Queued,
        started_at: None,
        duration_ms: None,
        uncertain: false,
    };
    step.data.phase = Phase::Tools(ToolRound {
        calls: calls.into_iter().map(slot).collect(),
        parallel,
        asked: None,
        rejected: None,
    });
    tool_ended::advance(step);
}
