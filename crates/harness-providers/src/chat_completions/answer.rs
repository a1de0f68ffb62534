//! One answer, grown from pieces, and what it means in the end.

use harness_model::{Finish, Usage};
use serde_json::{Map, Value, json};

use super::{
    fragments::{Fragments, merge},
    wire::{Choice, Chunk, ContentField},
};
use crate::{
    bounded_json::{self, NODES_MAX},
    calls::Ending,
    http_failure::ErrorBody,
    usage::{count, keep_newer},
    wire::{Answered, Asked, FILTERED, Piece, PieceError, Reader},
};

/// `type` of the raw item that holds the provider's own fields of an answer.
pub(super) const EXTRA_ITEM: &str = "chat_extra.v1";

/// An answer as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    refusal: String,
    calls: Fragments,
    extra: Map<String, Value>,
    /// Values in `extra`.
    extra_nodes: usize,
    finish: Option<String>,
    usage: Usage,
    model: Option<String>,
    id: Option<String>,
}

impl Reader for Answer {
    fn absorb(&mut self, _name: &str, data: &[u8]) -> Result<Piece, PieceError> {
        let mut chunk = parse(data)?;
        let choice = self.absorb_common(&mut chunk)?.unwrap_or_default();
        // Some servers repeat the whole message at the end; the pieces have said it already.
        let Some(delta) = choice.delta else { return Ok(Piece::default()) };
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.calls.absorb(fragment)?;
        }
        self.keep_extra(delta.extra)?;
        self.refusal.push_str(&delta.refusal.unwrap_or_default());
        let text = delta.content.map(ContentField::into_text).unwrap_or_default();
        self.text.push_str(&text);
        // The usage and `[DONE]` come after the reason.
        Ok(Piece { text, is_last: false })
    }

    fn absorb_whole(&mut self, data: &[u8]) -> Result<String, PieceError> {
        let mut chunk = parse(data)?;
        let choice = self.absorb_common(&mut chunk)?.ok_or(PieceError::Unparseable)?;
        let message = choice.message.ok_or(PieceError::Unparseable)?;
        for fragment in message.tool_calls.unwrap_or_default() {
            self.calls.push_whole(fragment)?;
        }
        self.keep_extra(message.extra)?;
        self.refusal = message.refusal.unwrap_or_default();
        self.text = message.content.map(ContentField::into_text).unwrap_or_default();
        Ok(self.text.clone())
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self: Box<Self>, asked: &Asked) -> Answered {
        let finish = self.meaning_of_finish(asked);
        let ending = if self.is_cut() { Ending::Cut } else { Ending::Whole };
        let mut output = asked.output(finish, self.usage);
        let (calls, call_extras) = self.calls.finish(&asked.names, ending);
        if output.finish == Finish::Refusal {
            let refusal = if self.refusal.is_empty() { FILTERED.to_owned() } else { self.refusal };
            output.refusal = Some(refusal);
        } else {
            output.calls = calls;
        }
        output.text = self.text;
        output.model = self.model.unwrap_or(output.model);
        output.request_id = self.id;
        output.raw_items = raw_items(self.extra, call_extras);
        Answered { output, rest: String::new(), is_paused: false }
    }
}

impl Answer {
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

    /// Keeps fields of the provider's own.
    fn keep_extra(&mut self, extra: Map<String, Value>) -> Result<(), PieceError> {
        self.extra_nodes += bounded_json::nodes_of(&extra);
        if self.extra_nodes > NODES_MAX {
            return Err(PieceError::TooMuch);
        }
        merge(&mut self.extra, extra);
        Ok(())
    }

    fn is_cut(&self) -> bool {
        matches!(self.finish.as_deref(), Some("length" | "max_tokens" | "model_length"))
    }

    fn meaning_of_finish(&self, asked: &Asked) -> Finish {
        let reason = self.finish.as_deref().unwrap_or("stop");
        if !self.refusal.is_empty() || reason == "content_filter" {
            return Finish::Refusal;
        }
        if !self.calls.is_empty() {
            return Finish::ToolCalls;
        }
        match reason {
            "stop" if asked.is_at_cap(&self.usage) => Finish::Length,
            "stop" => Finish::Stop,
            "tool_calls" | "function_call" => Finish::ToolCalls,
            _ if self.is_cut() => Finish::Length,
            other => Finish::Other(other.to_owned()),
        }
    }
}

fn parse(data: &[u8]) -> Result<Chunk, PieceError> {
    let chunk: Chunk = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
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

fn add_usage(usage: &mut Usage, wire: &Value) {
    let details = |name: &str| count(wire, &format!("/prompt_tokens_details/{name}"));
    keep_newer(&mut usage.input, count(wire, "/prompt_tokens"));
    keep_newer(&mut usage.output, count(wire, "/completion_tokens"));
    keep_newer(&mut usage.cached, details("cached_tokens").or(count(wire, "/prompt_cache_hit_tokens")));
    keep_newer(&mut usage.cache_written, details("cache_write_tokens"));
}
