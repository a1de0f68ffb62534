//! What a server and the task workflow say to each other: start input and signals. Versioned, recorded, never
//! reinterpreted.

use serde::{Deserialize, Serialize};

use crate::{AgentId, BlockRef, ContextId, Lifecycle, MessageId, ParticipantId, TaskExtension, TaskId};

/// Workflow type of a task.
pub const TASK_WORKFLOW: &str = "task.v1";
/// Signal that carries an [`InboundMessage`].
pub const MESSAGE_SIGNAL: &str = "message.v1";
/// Signal that carries a [`CancelRequest`].
pub const CANCEL_SIGNAL: &str = "cancel.v1";

/// Start input of a task workflow. The participants are in the extension, this agent included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartTask {
    /// The task; also the workflow.
    pub task_id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// The id under which this harness takes part.
    pub agent_id: AgentId,
    /// What the end of a turn means.
    pub lifecycle: Lifecycle,
    /// Who does the work.
    pub mode: TaskMode,
    /// The stored extension.
    pub extension: TaskExtension,
    /// Model chosen by a trusted delegator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reasoning effort chosen by a trusted delegator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// How many delegations lie above the task.
    #[serde(default)]
    pub depth: u32,
    /// Whether no message comes with the start (it was the envelope alone): a conversation then parks until one arrives.
    #[serde(default)]
    pub awaits_message: bool,
}

/// Who does the work of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskMode {
    /// The model of this harness.
    #[default]
    Agent,
    /// A participant other than this agent: no model call, the task waits for its assignee.
    Participant,
}

/// A message that a server accepted for a task. The content is in the block, a `Message` as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboundMessage {
    /// Chosen by the sender.
    pub message_id: MessageId,
    /// The stored message, already scrubbed.
    pub block: BlockRef,
    /// Who asserted it.
    pub sender: ParticipantId,
    /// Whether the running turn is to be interrupted.
    #[serde(default)]
    pub interrupt: bool,
}

impl InboundMessage {
    /// Key under which repeats of this message are recognised: sender and message id.
    pub fn dedupe_key(&self) -> String {
        format!("{}/{}", self.sender, self.message_id)
    }
}

/// A request to cancel a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Text of the final status.
    pub reason: String,
    /// Who asked.
    pub by: ParticipantId,
}
