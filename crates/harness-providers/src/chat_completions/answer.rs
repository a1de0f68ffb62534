//! One answer, grown from pieces, and what it means in the end.

use harness_model::{Finish, ModelOutput, Usage, limits::JSON_DEPTH_MAX};
use serde_json::{Map, Value, json};

use super::{
    fragments::{Calls, CallsError, merge},
    wire::{Choice, Chunk},
};
use crate::{http_failure::ErrorBody, tool_names::ToolNames};

/// `type` of the raw item that holds the provider's own fields of an answer.
pub(super) const EXTRA_ITEM: &str = "chat_extra.v1";
/// Stands for the words of a refusal when a filter gives none.
const FILTERED: &str = "The provider's content filter stopped the answer.";

/// Why a piece is not part of an answer.
#[derive(Debug)]
pub(super) enum PieceError {
    /// The provider reports an error inside a successful response.
    Provider(ErrorBody),
    /// Not JSON of the expected shape.
    Unparseable,
    /// Beyond what an answer may hold.
    Calls(CallsError),
}

/// What an answer turned out to be when nothing follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EmptyAnswer;

/// An answer as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    refusal: String,
    calls: Calls,
    extra: Map<String, Value>,
    finish: Option<String>,
    usage: Usage,
    model: Option<String>,
    id: Option<String>,
}

/// What the request said that its answer has to be read with.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) max_output_tokens: u32,
    pub(super) names: ToolNames,
    /// Length of the request's body.
    pub(super) body_bytes: usize,
}

impl Answer {
    /// Whether the provider said why it stopped; without that an answer is cut off.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Takes one streamed piece and returns the text in it.
    pub(super) fn absorb(&mut self, data: &[u8]) -> Result<String, PieceError> {
        let mut chunk = parse(data)?;
        let choice = self.absorb_common(&mut chunk)?.unwrap_or_default();
        // Some servers repeat the whole message at the end; the pieces have said it already.
        let Some(delta) = choice.delta else { return Ok(String::new()) };
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.calls.absorb(fragment).map_err(PieceError::Calls)?;
        }
        merge(&mut self.extra, delta.extra);
        self.refusal.push_str(&delta.refusal.unwrap_or_default());
        let text = delta.content.map(super::wire::ContentField::into_text).unwrap_or_default();
        self.text.push_str(&text);
        Ok(text)
    }

    /// Takes a whole answer and returns its text.
    pub(super) fn absorb_whole(&mut self, data: &[u8]) -> Result<String, PieceError> {
        let mut chunk = parse(data)?;
        let choice = self.absorb_common(&mut chunk)?.ok_or(PieceError::Unparseable)?;
        let message = choice.message.ok_or(PieceError::Unparseable)?;
        for fragment in message.tool_calls.unwrap_or_default() {
            self.calls.push_whole(fragment).map_err(PieceError::Calls)?;
        }
        merge(&mut self.extra, message.extra);
        self.refusal = message.refusal.unwrap_or_default();
        self.text = message.content.map(super::wire::ContentField::into_text).unwrap_or_default();
        Ok(self.text.clone())
    }

    /// The answer in the harness's terms.
    pub(super) fn finish(
        self,
        asked: &Asked,
        request_id: Option<String>,
    ) -> Result<ModelOutput, EmptyAnswer> {
        self.warn_when_the_prompt_was_cut(asked);
        let finish = self.meaning_of_finish(asked.max_output_tokens);
        let (calls, call_extras) = self.calls.finish(&asked.names);
        let refused = finish == Finish::Refusal;
        let is_empty = self.text.trim().is_empty() && calls.is_empty() && !refused;
        if is_empty && finish != Finish::Length {
            return Err(EmptyAnswer);
        }
        let refusal = if self.refusal.is_empty() { FILTERED.to_owned() } else { self.refusal };
        Ok(ModelOutput {
            text: self.text,
            calls: if refused { Vec::new() } else { calls },
            refusal: refused.then_some(refusal),
            finish,
            usage: self.usage,
            model: self.model.unwrap_or_else(|| asked.model.clone()),
            provider: asked.provider.clone(),
            request_id: request_id.or(self.id),
            raw_items: raw_items(self.extra, call_extras),
        })
    }

    /// What a whole answer and a streamed piece have in common; returns the only choice.
    fn absorb_common(&mut self, chunk: &mut Chunk) -> Result<Option<Choice>, PieceError> {
        if self.model.is_none() {
            self.model = chunk.model.take().filter(|model| !model.is_empty());
        }
        if self.id.is_none() {
            self.id = chunk.id.take().filter(|id| !id.is_empty());
        }
        if let Some(usage) = &chunk.usage {
            add_usage(&mut self.usage, usage);
        }
        let choice = chunk.choices.take().unwrap_or_default().into_iter().next();
        if let Some(choice) = &choice {
            if let Some(error) = choice.error.as_ref().filter(|error| !error.is_null()) {
                return Err(PieceError::Provider(ErrorBody::of(error)));
            }
            if choice.finish_reason.as_deref() == Some("error") {
                return Err(PieceError::Provider(ErrorBody::of(&json!(
                    "the provider ended the answer with an error"
                ))));
            }
            if let Some(reason) = choice.finish_reason.as_ref().filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason.clone());
            }
        }
        Ok(choice)
    }

    fn meaning_of_finish(&self, max_output_tokens: u32) -> Finish {
        let reason = self.finish.as_deref().unwrap_or("stop");
        if !self.refusal.is_empty() || reason == "content_filter" {
            return Finish::Refusal;
        }
        if !self.calls.is_empty() {
            return Finish::ToolCalls;
        }
        match reason {
            // Servers exist that call an answer complete which their own cap cut off.
            "stop" if self.usage.output.is_some_and(|tokens| tokens >= u64::from(max_output_tokens)) => {
                Finish::Length
            }
            "stop" => Finish::Stop,
            "length" | "max_tokens" | "model_length" => Finish::Length,
            other => Finish::Other(other.to_owned()),
        }
    }

    /// A server with a small context window may drop the front of the prompt and say nothing.
    fn warn_when_the_prompt_was_cut(&self, asked: &Asked) {
        /// No tokenizer packs more bytes of ordinary JSON into one token, by a wide margin.
        const BYTES_PER_TOKEN_MAX: usize = 16;
        /// Below this a difference says nothing.
        const BODY_BYTES_MIN: usize = 16_384;
        let Some(input) = self.usage.input else { return };
        let least = (asked.body_bytes / BYTES_PER_TOKEN_MAX) as u64;
        if asked.body_bytes >= BODY_BYTES_MIN && input < least {
            tracing::warn!(
                provider = asked.provider,
                input_tokens = input,
                request_bytes = asked.body_bytes,
                "the provider read far less than it was sent; its context window may be smaller than configured"
            );
        }
    }
}

fn parse(data: &[u8]) -> Result<Chunk, PieceError> {
    if !harness_model::depth_at_most(data, JSON_DEPTH_MAX) {
        return Err(PieceError::Unparseable);
    }
    let chunk: Chunk = serde_json::from_slice(data).map_err(|_| PieceError::Unparseable)?;
    if chunk.error.as_ref().is_some_and(|error| !error.is_null()) || chunk.object.as_deref() == Some("error")
    {
        return Err(PieceError::Provider(ErrorBody::parse(data)));
    }
    Ok(chunk)
}

/// The provider's own fields as one item; nothing when there are none.
fn raw_items(message: Map<String, Value>, calls: Vec<Map<String, Value>>) -> Vec<Value> {
    if message.is_empty() && calls.iter().all(Map::is_empty) {
        return Vec::new();
    }
    vec![json!({"type": EXTRA_ITEM, "message": message, "calls": calls})]
}

/// A count that is missing or not a count stays unknown.
fn add_usage(usage: &mut Usage, wire: &Value) {
    let count = |path: &str| wire.pointer(path).and_then(Value::as_u64);
    let keep = |slot: &mut Option<u64>, value: Option<u64>| *slot = value.or(*slot);
    keep(&mut usage.input, count("/prompt_tokens"));
    keep(&mut usage.output, count("/completion_tokens"));
    let cached = count("/prompt_tokens_details/cached_tokens").or_else(|| count("/prompt_cache_hit_tokens"));
    keep(&mut usage.cached, cached);
    keep(&mut usage.cache_written, count("/prompt_tokens_details/cache_write_tokens"));
}
