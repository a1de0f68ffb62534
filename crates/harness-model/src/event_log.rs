//! The event log of a task: what subscribers see, numbered without gaps. Kinds are versioned and never reinterpreted.

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, CallId, Content, ContentPart, ParticipantId, SubState, TaskState, Timestamp};

/// One entry of a task's event log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Position in the log: 0, 1, 2, ... without gaps. The SSE `id`.
    pub seq: u64,
    /// When the entry became durable.
    pub at: Timestamp,
    /// What happened.
    pub event: TaskEvent,
}

/// What happened to a task, as far as subscribers are concerned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum TaskEvent {
    /// The task exists, SUBMITTED. Always and only sequence 0.
    #[serde(rename = "task_created.v1")]
    TaskCreated,
    /// The status changed, or was repeated with a new text.
    #[serde(rename = "status_changed.v1")]
    StatusChanged(StatusChange),
    /// An artifact was published, extended or restarted.
    #[serde(rename = "artifact_changed.v1")]
    ArtifactChanged(ArtifactChange),
}

/// A status of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusChange {
    /// The state.
    pub state: TaskState,
    /// Why the task waits, when it is not for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_state: Option<SubState>,
    /// What the agent says with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Content>,
    /// The question, when somebody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<HelpRequest>,
    /// The tool calls of the running turn, for both user interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallSummary>,
}

impl StatusChange {
    /// A bare change of state.
    pub fn to(state: TaskState) -> Self {
        Self { state, sub_state: None, text: None, help: None, tool_calls: Vec::new() }
    }

    /// The same with a text.
    pub fn with_text(mut self, text: Content) -> Self {
        self.text = Some(text);
        self
    }
}

/// A question to a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HelpRequest {
    /// Who is asked.
    pub participant_id: ParticipantId,
    /// The question.
    pub question: Content,
    /// Suggested answers; may be empty.
    #[serde(default)]
    pub options: Vec<String>,
}

/// A tool call as participants may see it: no arguments, no results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallSummary {
    /// The call.
    pub call_id: CallId,
    /// Registry name of the tool.
    pub name: String,
    /// One cleaned, capped line for people; may be empty.
    #[serde(default)]
    pub summary: String,
    /// Where the call stands.
    pub state: ToolCallState,
    /// How long it took, in milliseconds, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// State of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallState {
    /// Announced or running.
    Running,
    /// Ended with a result.
    Succeeded,
    /// Ended with an error result.
    Failed,
    /// Nobody knows whether it took effect.
    OutcomeUnknown,
    /// Stopped by an interrupt or a cancel.
    Canceled,
}

impl ToolCallState {
    /// Snake-case name, as on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Canceled => "canceled",
        }
    }
}

/// A change of an artifact. Source: A2A 1.0 `TaskArtifactUpdateEvent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactChange {
    /// Which artifact.
    pub artifact_id: ArtifactId,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The parts of this chunk.
    pub parts: Vec<ContentPart>,
    /// Whether the parts are added to what is there (`true`) or start the artifact anew.
    pub append: bool,
    /// Whether the artifact is complete with this chunk.
    pub last_chunk: bool,
}
