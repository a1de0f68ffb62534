//! What the model reads and writes, as the harness stores it. Provider-neutral, format version 1, never reinterpreted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlockRef, CallId};

/// Reference to one item of a task's conversation with the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemRef {
    /// Number within the task, from 1; never reused.
    pub id: u64,
    /// The item.
    pub body: ItemBody,
    /// Characters the model reads for it; what budgets are counted in.
    pub chars: u64,
}

/// Where an item is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemBody {
    /// A block that holds a [`StoredItem`] as JSON.
    Block(BlockRef),
    /// A short item in the harness's own words.
    Inline(Box<StoredItem>),
}

/// One item of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum StoredItem {
    /// Something said to the agent.
    #[serde(rename = "user.v1")]
    User {
        /// What was said.
        parts: Vec<ItemPart>,
        /// Set when the words are not a person's own; they are then framed as untrusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Source>,
    },
    /// One whole answer of the model, tool calls and provider items included.
    #[serde(rename = "model.v1")]
    Model(ModelOutput),
    /// The result of one tool call. Every call of a model answer has exactly one.
    #[serde(rename = "tool_result.v1")]
    ToolResult {
        /// The call it answers.
        call_id: CallId,
        /// Registry name of the tool.
        name: String,
        /// Whether the call failed.
        is_error: bool,
        /// The result; untrusted unless the harness wrote it.
        parts: Vec<ItemPart>,
    },
}

impl StoredItem {
    /// Characters the model reads for this item, near enough for a budget.
    pub fn chars(&self) -> u64 {
        let parts_chars = |parts: &[ItemPart]| parts.iter().map(ItemPart::chars).sum::<u64>();
        match self {
            Self::User { parts, .. } | Self::ToolResult { parts, .. } => parts_chars(parts),
            Self::Model(output) => {
                let calls = output.calls.iter().map(|c| c.name.len() + c.arguments.len());
                (output.text.chars().count() + calls.sum::<usize>()) as u64
            }
        }
    }
}

/// Where untrusted words come from; the `source` attribute of their fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A tool result.
    Tool,
    /// Another agent.
    Agent,
    /// The cards of the roster.
    AgentCards,
}

impl Source {
    /// The attribute value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::AgentCards => "agent-cards",
        }
    }
}

/// One part of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemPart {
    /// Text.
    Text(String),
    /// A JSON value.
    Data(Value),
    /// Bytes in the store: an image, audio or a file.
    Binary {
        /// Media type.
        media_type: String,
        /// The bytes.
        block: BlockRef,
    },
    /// A link; never fetched by the harness itself.
    Link {
        /// Where it leads.
        uri: String,
        /// Media type, when known.
        media_type: Option<String>,
    },
}

impl ItemPart {
    /// Characters of the part as the model reads it.
    pub fn chars(&self) -> u64 {
        match self {
            Self::Text(text) => text.chars().count() as u64,
            Self::Data(value) => value.to_string().len() as u64,
            Self::Binary { .. } => 64,
            Self::Link { uri, .. } => uri.len() as u64,
        }
    }
}

/// One whole answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelOutput {
    /// The text, without tool calls; may be empty.
    pub text: String,
    /// Tool calls in the order of the model.
    #[serde(default)]
    pub calls: Vec<RequestedCall>,
    /// Words of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Token counts; what the provider did not say is `None`, never zero.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The provider that answered.
    pub provider: String,
    /// The provider's id of the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The provider's items verbatim, replayed byte for byte to the same provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raw_items: Vec<Value>,
}

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The model's number of the call.
    pub call_id: CallId,
    /// Registry name of the tool; unknown names are kept as they came.
    pub name: String,
    /// The exact argument text. Not necessarily JSON; never repaired.
    pub arguments: String,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    Stop,
    /// It wants tools.
    ToolCalls,
    /// It ran into a token limit.
    Length,
    /// It refused.
    Refusal,
    /// Something the harness does not know; kept.
    Other(String),
}

/// Token counts of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input: Option<u64>,
    /// Input tokens read from the provider's cache.
    pub cached: Option<u64>,
    /// Input tokens written to the provider's cache.
    pub cache_written: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
}
