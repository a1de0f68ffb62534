//! One answer: text as it streams, everything else from the items of the output.

use harness_model::{Finish, Usage};
use serde_json::{Value, json, value::RawValue};

use super::{
    RAW_KIND,
    items::Items,
    wire::{Event, Item, Response},
};
use crate::{
    bounded_json,
    calls::{self, Ending, WireCall, arguments_text},
    http_failure::ErrorBody,
    usage::{count, keep_newer},
    verbatim,
    wire::{Answered, Asked, FILTERED, Piece, PieceError, Reader},
};

/// Between two messages of one answer.
const MESSAGE_GAP: &str = "\n\n";

/// An answer as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Answer {
    items: Items,
    /// The text that has been passed on.
    text: String,
    /// The item that the newest text belongs to.
    text_of: Option<usize>,
    refusal: String,
    /// The output as a whole, when the provider repeats it at the end.
    output: Vec<Box<RawValue>>,
    ended: Option<Ended>,
    usage: Usage,
    model: Option<String>,
    id: Option<String>,
}

/// How the provider ended the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ended {
    Completed,
    /// Not completed, with the reason.
    Incomplete(String),
}

/// What the items of an output come to.
#[derive(Debug, Default)]
struct Content {
    text: String,
    refusal: String,
    calls: Vec<WireCall>,
    /// Whether the items are no more than the text and the calls.
    is_plain: bool,
}

impl Reader for Answer {
    fn absorb(&mut self, name: &str, data: &[u8]) -> Result<Piece, PieceError> {
        let event: Event = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
        let kind = event.kind.as_deref().unwrap_or(name);
        match kind {
            "response.output_text.delta" => return Ok(self.add_text(&event)),
            "response.refusal.delta" => {
                self.refusal.push_str(event.delta.as_ref().and_then(Value::as_str).unwrap_or_default());
            }
            "response.function_call_arguments.delta" => self.items.add_arguments(&event)?,
            "response.function_call_arguments.done" => self.items.set_arguments(&event)?,
            "response.output_item.added" => self.items.show(event, false)?,
            "response.output_item.done" => self.items.show(event, true)?,
            "error" => return Err(PieceError::Provider(ErrorBody::parse(data))),
            "response.created" | "response.in_progress" | "response.queued" => {
                self.take_facts(&response(&event)?);
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let ending = kind.trim_start_matches("response.").to_owned();
                self.take_end(response(&event)?, &ending)?;
                return Ok(Piece { text: String::new(), is_last: true });
            }
            // An error of a server that speaks this wire only in its better moments.
            "" => {
                let value: Value = bounded_json::parse(data).unwrap_or_default();
                if value.get("error").is_some_and(|error| !error.is_null()) || value["object"] == "error" {
                    return Err(PieceError::Provider(ErrorBody::of(&value)));
                }
            }
            _ => {}
        }
        Ok(Piece::default())
    }

    fn absorb_whole(&mut self, data: &[u8]) -> Result<String, PieceError> {
        let response: Response = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
        if response.object.as_deref() == Some("error") {
            return Err(PieceError::Provider(ErrorBody::parse(data)));
        }
        let has_error = response.error.as_ref().is_some_and(|error| !error.is_null());
        if response.output.is_none() && !has_error && response.status.is_none() {
            let value: Value = bounded_json::parse(data).ok_or(PieceError::Unparseable)?;
            let bare_error = value.get("message").is_some_and(Value::is_string);
            return Err(match bare_error {
                true => PieceError::Provider(ErrorBody::of(&value)),
                false => PieceError::Unparseable,
            });
        }
        self.take_end(response, "completed")?;
        Ok(String::new())
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    fn finish(self: Box<Self>, asked: &Asked) -> Answered {
        let answer = *self;
        let items = if answer.output.is_empty() { answer.items.finish() } else { answer.output };
        let mut content = content(&items);
        if content.refusal.is_empty() {
            content.refusal = answer.refusal;
        }
        let is_cut = answer.ended == Some(Ended::Incomplete("max_output_tokens".to_owned()));
        let finish = match answer.ended {
            _ if !content.refusal.is_empty() => Finish::Refusal,
            Some(Ended::Incomplete(reason)) if reason == "content_filter" => Finish::Refusal,
            _ if !content.calls.is_empty() => Finish::ToolCalls,
            Some(Ended::Incomplete(_)) if is_cut => Finish::Length,
            Some(Ended::Incomplete(reason)) => Finish::Other(reason),
            Some(Ended::Completed) | None if asked.is_at_cap(&answer.usage) => Finish::Length,
            Some(Ended::Completed) | None => Finish::Stop,
        };
        let mut output = asked.output(finish, answer.usage);
        if output.finish == Finish::Refusal {
            let refusal = if content.refusal.is_empty() { FILTERED.to_owned() } else { content.refusal };
            output.refusal = Some(refusal);
        } else {
            let ending = if is_cut { Ending::Cut } else { Ending::Whole };
            output.calls = calls::requested(content.calls, &asked.names, ending);
        }
        // What was passed on cannot be taken back; what it lacks can be added.
        let rest = content.text.strip_prefix(&answer.text).unwrap_or_default().to_owned();
        output.text = answer.text + &rest;
        output.model = answer.model.unwrap_or(output.model);
        output.request_id = answer.id;
        if !content.is_plain {
            let kept: Vec<Value> = items.iter().map(|item| verbatim::kept(item)).collect();
            output.raw_items = verbatim::set(RAW_KIND, &asked.model, &kept);
        }
        Answered { output, rest, is_paused: false }
    }
}

impl Answer {
    fn add_text(&mut self, event: &Event) -> Piece {
        let at = self.items.find(event);
        let delta = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
        let begins = at.is_some() && self.text_of.is_some() && at != self.text_of && !self.text.is_empty();
        let text = if begins { format!("{MESSAGE_GAP}{delta}") } else { delta.to_owned() };
        self.text_of = at;
        self.text.push_str(&text);
        Piece { text, is_last: false }
    }

    fn take_facts(&mut self, response: &Response) {
        if let Some(model) = response.model.as_ref().filter(|model| !model.is_empty()) {
            self.model = Some(model.clone());
        }
        if let Some(id) = response.id.as_ref().filter(|id| !id.is_empty()) {
            self.id = Some(id.clone());
        }
        if let Some(usage) = &response.usage {
            keep_newer(&mut self.usage.input, count(usage, "/input_tokens"));
            keep_newer(&mut self.usage.cached, count(usage, "/input_tokens_details/cached_tokens"));
            keep_newer(
                &mut self.usage.cache_written,
                count(usage, "/input_tokens_details/cache_write_tokens"),
            );
            keep_newer(&mut self.usage.output, count(usage, "/output_tokens"));
        }
    }

    /// Takes the end of the answer; `ending` is what the event says, and the status of the response says it better.
    fn take_end(&mut self, response: Response, ending: &str) -> Result<(), PieceError> {
        self.take_facts(&response);
        if let Some(error) = response.error.as_ref().filter(|error| !error.is_null()) {
            return Err(PieceError::Provider(ErrorBody::of(error)));
        }
        let status = response.status.as_deref().unwrap_or(ending);
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.ended = Some(match status {
            "completed" => Ended::Completed,
            "incomplete" => Ended::Incomplete(reason.unwrap_or_else(|| "incomplete".to_owned())),
            status => {
                let what = json!(format!("the provider ended the answer as {status:?}"));
                return Err(PieceError::Provider(ErrorBody::of(&what)));
            }
        });
        self.output = response.output.unwrap_or_default();
        let calls = self.output.iter().filter(|item| parsed(item).kind() == "function_call").count();
        Ok(calls::check_count(calls)?)
    }
}

fn response(event: &Event) -> Result<Response, PieceError> {
    let Some(raw) = &event.response else { return Ok(Response::default()) };
    serde_json::from_str(raw.get()).map_err(|_| PieceError::Unparseable)
}

/// An item of a shape that is not known has no parts that are.
fn parsed(item: &RawValue) -> Item {
    serde_json::from_str(item.get())
        .unwrap_or_else(|_| Item { kind: Some("unknown".to_owned()), ..Item::default() })
}

fn content(items: &[Box<RawValue>]) -> Content {
    let mut content = Content { is_plain: true, ..Content::default() };
    for raw in items {
        let item = parsed(raw);
        match item.kind() {
            "message" => {
                let text = item.text();
                if !content.text.is_empty() && !text.is_empty() {
                    content.text.push_str(MESSAGE_GAP);
                    content.is_plain = false;
                }
                content.text.push_str(&text);
                content.refusal.push_str(&item.refusal());
                // Words after calls would come before them when they are written anew.
                content.is_plain &= content.calls.is_empty() && is_plain_message(raw);
            }
            "function_call" => content.calls.push(WireCall {
                id: item.call_id.or(item.id).unwrap_or_default(),
                name: item.name.unwrap_or_default(),
                arguments: arguments_text(item.arguments.as_deref()),
            }),
            _ => content.is_plain = false,
        }
    }
    content
}

/// Whether a message is no more than its text.
fn is_plain_message(item: &RawValue) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(item.get()) else { return false };
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let is_plain_part = |part: &Value| {
        part.as_object().is_some_and(|part| {
            part.iter().all(|(key, value)| matches!(key.as_str(), "type" | "text") || is_empty(value))
        })
    };
    fields.iter().all(|(key, value)| match key.as_str() {
        "type" | "id" | "role" | "status" => true,
        "content" => {
            value.is_string() || value.as_array().is_some_and(|parts| parts.iter().all(is_plain_part))
        }
        _ => value.is_null(),
    })
}
