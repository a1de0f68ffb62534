//! The parts of Responses that are read. What a model wrote stays raw until it is known to be needed.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// One streamed event; each kind has some of these.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) response: Option<Box<RawValue>>,
    pub(super) item: Option<Box<RawValue>>,
    /// Text as a rule; other shapes belong to events that are not known.
    pub(super) delta: Option<Value>,
    /// The whole arguments, in the event that ends them.
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) item_id: Option<String>,
    pub(super) output_index: Option<Value>,
}

/// A response, whole or as far as an event shows it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    pub(super) id: Option<String>,
    pub(super) object: Option<String>,
    pub(super) model: Option<String>,
    pub(super) status: Option<String>,
    pub(super) output: Option<Vec<Box<RawValue>>>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
}

/// Why a response is incomplete.
#[derive(Debug, Default, Deserialize)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

/// One item of the output; each kind has some of these.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) id: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) content: Option<Value>,
}

impl Item {
    /// Its kind; a message needs none.
    pub(super) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("message")
    }

    /// The text in a message.
    pub(super) fn text(&self) -> String {
        self.content_fields("text")
    }

    /// The words of a refusal in a message.
    pub(super) fn refusal(&self) -> String {
        self.content_fields("refusal")
    }

    fn content_fields(&self, field: &str) -> String {
        match &self.content {
            Some(Value::String(text)) if field == "text" => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get(field)?.as_str()).collect(),
            _ => String::new(),
        }
    }
}
