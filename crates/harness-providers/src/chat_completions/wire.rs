//! The parts of Chat Completions that are read. One shape for both forms: a whole answer is a chunk with a `message`.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

/// `chat.completion` and `chat.completion.chunk`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk {
    pub(super) id: Option<String>,
    pub(super) object: Option<String>,
    pub(super) model: Option<String>,
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

/// One choice; exactly one is asked for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    pub(super) delta: Option<Delta>,
    pub(super) message: Option<Delta>,
    pub(super) finish_reason: Option<String>,
    pub(super) error: Option<Value>,
}

/// A message or a piece of one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(rename = "role")]
    _role: Option<IgnoredAny>,
    pub(super) content: Option<ContentField>,
    pub(super) refusal: Option<String>,
    pub(super) tool_calls: Option<Vec<Fragment>>,
    /// Fields of the provider's own, such as reasoning; sent back as they came.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// Text, or a list of typed parts as some servers send it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ContentField {
    /// The usual form.
    Text(String),
    /// Parts; those of type `text` are the answer.
    Parts(Vec<Value>),
}

impl ContentField {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        }
    }
}

/// A tool call or a piece of one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fragment {
    /// A number as a rule; anything else counts as missing.
    pub(super) index: Option<Value>,
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    _type: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) function: Option<FunctionFragment>,
    /// Fields of the provider's own, such as signatures; sent back as they came.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// Name and arguments of a call or pieces of them.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionFragment {
    pub(super) name: Option<String>,
    /// A string as a rule, an object from some servers; raw, because numbers must keep their digits.
    pub(super) arguments: Option<Box<RawValue>>,
}
