//! The parts of Messages that are read.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

/// One streamed event; each kind has some of these.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    /// `error` from servers that speak another wire in their worse moments.
    pub(super) object: Option<String>,
    pub(super) message: Option<Box<RawValue>>,
    /// A number as a rule; anything else counts as missing.
    pub(super) index: Option<Value>,
    pub(super) content_block: Option<Box<RawValue>>,
    pub(super) delta: Option<Map<String, Value>>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

/// A message, whole or as it begins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) content: Option<Content>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<Value>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

/// The content of a message: blocks, kept raw because what a model wrote must keep its digits.
pub(super) type Content = Vec<Box<RawValue>>;

/// The part of a block whose text counts.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ExactBlock {
    pub(super) input: Option<Box<RawValue>>,
}
