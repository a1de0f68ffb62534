//! Messages as the harness stores them. The A2A wire form is converted at the server's border.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{BlockRef, ContextId, MessageId, ParticipantId, TaskId};

/// One message of a participant or of the agent. Stored as a block, JSON, format version 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Chosen by the sender.
    pub message_id: MessageId,
    /// The context, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// The task, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Who speaks in A2A terms.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// Free-form metadata of the sender.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// URIs of extensions the message uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Tasks the message refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<TaskId>,
}

impl Message {
    /// All text parts, joined by newlines.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match &part.body {
                PartBody::Text(text) => Some(text.as_str()),
                PartBody::Data(_) | PartBody::Raw(_) | PartBody::Url(_) => None,
            })
            .collect();
        texts.join("\n")
    }

    /// The participant the metadata asserts; an empty value counts as none.
    pub fn asserted_participant(&self) -> Option<ParticipantId> {
        let id = self.metadata.get("participant_id")?.as_str()?;
        (!id.is_empty()).then(|| ParticipantId::from(id))
    }

    /// Whether the sender asks to interrupt the running turn.
    pub fn asks_interrupt(&self) -> bool {
        self.metadata.get("interrupt") == Some(&Value::Bool(true))
    }
}

/// Role of a message. Source: A2A 1.0 `Role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever sends messages to the agent.
    User,
    /// The agent.
    Agent,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The content.
    pub body: PartBody,
    /// Media type, when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// File name, when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Free-form metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Part {
    /// A plain text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(PartBody::Text(text.into()))
    }

    /// A part with this content and nothing else.
    pub fn of(body: PartBody) -> Self {
        Self { body, media_type: None, filename: None, metadata: Map::new() }
    }

    /// The part with a media type.
    pub fn with_media_type(mut self, media_type: &str) -> Self {
        self.media_type = Some(media_type.to_owned());
        self
    }
}

/// Content of a part: A2A's four kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartBody {
    /// Text.
    Text(String),
    /// A JSON value.
    Data(Value),
    /// Bytes, stored as a block of their own.
    Raw(BlockRef),
    /// A URL; never fetched by the harness itself.
    Url(String),
}
