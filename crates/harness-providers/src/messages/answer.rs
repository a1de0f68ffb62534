//! One answer, grown from events, and what it means in the end.

use harness_model::{Finish, Usage};
use serde_json::{Map, Value, value::RawValue};

use super::{
    PAUSE_TURN, RAW_KIND,
    blocks::{Block, Blocks},
    wire::{Event, Message},
};
use crate::{
    bounded_json,
    calls::{self, Ending},
    http_failure::ErrorBody,
    usage::{count, keep_larger},
    verbatim,
    wire::{Answered, Asked, FILTERED, Piece, PieceError, Reader},
};

/// An answer as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: Blocks,
    stop_reason: Option<String>,
    /// What the provider says about a refusal.
    explanation: Option<String>,
    is_ended: bool,
    /// The text that has been passed on.
    text: String,
    counts: Counts,
    model: Option<String>,
    id: Option<String>,
}

/// Token counts as this wire has them: the three kinds of input tokens apart.
#[derive(Debug, Default)]
struct Counts {
    uncached: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
}

impl Reader for Answer {
    fn absorb(&mut self, name: &str, data: &[u8]) -> Result<Piece, PieceError> {
        let event: Event = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
        let kind = event.kind.clone().unwrap_or_else(|| name.to_owned());
        let has_error = event.error.as_ref().is_some_and(|error| !error.is_null());
        if has_error || kind == "error" || event.object.as_deref() == Some("error") {
            return Err(PieceError::Provider(ErrorBody::parse(data)));
        }
        let text = match kind.as_str() {
            "message_start" => {
                self.take_start(event.message.as_deref())?;
                String::new()
            }
            "content_block_start" => self.blocks.begin(event)?,
            "content_block_delta" => self.blocks.add(event)?,
            "message_delta" => {
                self.counts.take(event.usage.as_ref());
                self.take_stop(event.delta.as_ref());
                String::new()
            }
            "message_stop" => {
                self.is_ended = true;
                return Ok(Piece { text: String::new(), is_last: true });
            }
            _ => String::new(),
        };
        self.text.push_str(&text);
        Ok(Piece { text, is_last: false })
    }

    fn absorb_whole(&mut self, data: &[u8]) -> Result<String, PieceError> {
        let message: Message = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
        let is_error = message.error.as_ref().is_some_and(|error| !error.is_null());
        if is_error || message.kind.as_deref() == Some("error") {
            return Err(PieceError::Provider(ErrorBody::parse(data)));
        }
        if message.content.is_none() {
            let body: Value = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
            let bare_error = body.get("message").is_some_and(Value::is_string);
            return Err(match bare_error {
                true => PieceError::Provider(ErrorBody::of(&body)),
                false => PieceError::Unparseable,
            });
        }
        self.take_message(message)?;
        self.is_ended = true;
        Ok(String::new())
    }

    fn is_finished(&self) -> bool {
        self.is_ended || self.stop_reason.is_some()
    }

    fn finish(self: Box<Self>, asked: &Asked) -> Answered {
        let usage = self.counts.usage();
        let blocks = self.blocks.into_blocks();
        let text: String = blocks.iter().map(Block::text).collect();
        let calls: Vec<_> = blocks.iter().filter_map(Block::call).collect();
        let reason = self.stop_reason.as_deref().unwrap_or("end_turn");
        let is_paused = reason == PAUSE_TURN && calls.is_empty();
        let is_cut = matches!(reason, "max_tokens" | "model_context_window_exceeded");
        let finish = match reason {
            "refusal" => Finish::Refusal,
            _ if !calls.is_empty() => Finish::ToolCalls,
            "end_turn" | "stop_sequence" if asked.is_at_cap(&usage) => Finish::Length,
            "end_turn" | "stop_sequence" => Finish::Stop,
            "tool_use" => Finish::ToolCalls,
            _ if is_cut => Finish::Length,
            other => Finish::Other(other.to_owned()),
        };
        if reason == "model_context_window_exceeded" {
            tracing::warn!(provider = asked.provider, "the answer was cut off where the context window ends");
        }
        let mut output = asked.output(finish, usage);
        if output.finish == Finish::Refusal {
            let words =
                self.explanation.or_else(|| Some(text.trim().to_owned()).filter(|text| !text.is_empty()));
            output.refusal = Some(words.unwrap_or_else(|| FILTERED.to_owned()));
        } else {
            let ending = if is_cut { Ending::Cut } else { Ending::Whole };
            output.calls = calls::requested(calls, &asked.names, ending);
        }
        output.model = self.model.unwrap_or(output.model);
        output.request_id = self.id;
        // The parts of a paused answer have to fit together again.
        let is_plain = blocks.iter().all(Block::is_plain) && !words_follow_calls(&blocks);
        if !is_plain || is_paused || asked.is_continued {
            let kept: Vec<Value> = blocks.into_iter().map(Block::into_kept).collect();
            output.raw_items = verbatim::set(RAW_KIND, &asked.model, &kept);
        }
        // What was passed on cannot be taken back; what it lacks can be added.
        let rest = text.strip_prefix(&self.text).unwrap_or_default().to_owned();
        output.text = self.text + &rest;
        Answered { output, rest, is_paused }
    }
}

impl Answer {
    fn take_start(&mut self, message: Option<&RawValue>) -> Result<(), PieceError> {
        let Some(raw) = message else { return Ok(()) };
        let message: Message = serde_json::from_str(raw.get()).map_err(|_| PieceError::Unparseable)?;
        self.take_message(message)
    }

    fn take_message(&mut self, message: Message) -> Result<(), PieceError> {
        self.id = message.id.filter(|id| !id.is_empty());
        self.model = message.model.filter(|model| !model.is_empty());
        self.counts.take(message.usage.as_ref());
        self.stop_reason = message.stop_reason.filter(|reason| !reason.is_empty());
        self.explanation = message.stop_details.as_ref().and_then(explanation);
        for block in message.content.unwrap_or_default() {
            self.blocks.push_whole(block)?;
        }
        Ok(())
    }

    fn take_stop(&mut self, delta: Option<&Map<String, Value>>) {
        let Some(delta) = delta else { return };
        let reason = delta.get("stop_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            self.stop_reason = Some(reason.to_owned());
        }
        if let Some(details) = delta.get("stop_details") {
            self.explanation = explanation(details);
        }
    }
}

impl Counts {
    fn take(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        keep_larger(&mut self.uncached, count(usage, "/input_tokens"));
        keep_larger(&mut self.read, count(usage, "/cache_read_input_tokens"));
        keep_larger(&mut self.written, count(usage, "/cache_creation_input_tokens"));
        keep_larger(&mut self.output, count(usage, "/output_tokens"));
    }

    /// Input is all three kinds; unknown when the main one is.
    fn usage(&self) -> Usage {
        let input = self.uncached.map(|tokens| {
            tokens.saturating_add(self.read.unwrap_or(0)).saturating_add(self.written.unwrap_or(0))
        });
        Usage { input, cached: self.read, cache_written: self.written, output: self.output }
    }
}

fn explanation(details: &Value) -> Option<String> {
    let text = details.get("explanation")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn words_follow_calls(blocks: &[Block]) -> bool {
    let first_call = blocks.iter().position(|block| block.is("tool_use")).unwrap_or(blocks.len());
    blocks[first_call..].iter().any(|block| !block.is("tool_use"))
}
