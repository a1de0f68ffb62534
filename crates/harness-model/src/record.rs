//! The stored picture of a task, as reads return it.

use serde::{Deserialize, Serialize};

use crate::{
    ArtifactChange, ArtifactId, BlockRef, ContentPart, ContextId, Lifecycle, MessageId, StatusChange,
    TaskExtension, TaskId, Timestamp,
};

/// What the workflow says about a task after each step. The store adds sequence numbers and times of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The task.
    pub task_id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// What the end of a turn means.
    pub lifecycle: Lifecycle,
    /// The status now.
    pub status: StatusChange,
    /// When that status began.
    pub status_at: Timestamp,
    /// When the task was created.
    pub created_at: Timestamp,
    /// Participants, plan, goal and the rest.
    pub extension: TaskExtension,
    /// What the task has used of its models.
    #[serde(default)]
    pub usage: TaskUsage,
}

/// What a task has used of its models, over all turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// Model calls that answered.
    pub calls: u64,
    /// Input tokens, cached ones included.
    pub input_tokens: u64,
    /// Input tokens that came from a provider's cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Calls whose provider did not count tokens; what they used is in none of the numbers above.
    #[serde(default)]
    pub uncounted_calls: u64,
    /// Cost by the configured prices, in millionths of a US dollar; `None` when a model without a price answered.
    #[serde(default)]
    pub cost_micro_usd: Option<u64>,
}

impl TaskUsage {
    /// Tokens in all.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// One entry of `Task.history`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryEntry {
    /// A participant's message, stored as a `Message` block.
    Message {
        /// Its id.
        message_id: MessageId,
        /// The stored message.
        block: BlockRef,
    },
    /// The agent's words in the status with this log sequence number.
    Status {
        /// Position in the event log.
        seq: u64,
        /// The status.
        status: StatusChange,
    },
}

/// An artifact with all chunks so far put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Which artifact.
    pub artifact_id: ArtifactId,
    /// Name for people.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Every part, in order.
    pub parts: Vec<ContentPart>,
}

impl Artifact {
    /// Adds one change to a list of artifacts, in order of first appearance.
    pub fn fold(artifacts: &mut Vec<Self>, change: ArtifactChange) {
        let found = artifacts.iter_mut().find(|a| a.artifact_id == change.artifact_id);
        match found {
            Some(artifact) if change.append => artifact.parts.extend(change.parts),
            Some(artifact) => {
                artifact.parts = change.parts;
                artifact.name = change.name;
                artifact.description = change.description;
            }
            None => artifacts.push(Self {
                artifact_id: change.artifact_id,
                name: change.name,
                description: change.description,
                parts: change.parts,
            }),
        }
    }
}

/// A task as it was at one position of its event log.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSnapshot {
    /// The record.
    pub record: TaskRecord,
    /// Sequence number of the log entry that made the status what it is.
    pub status_seq: u64,
    /// Sequence number of the newest log entry the snapshot includes.
    pub last_seq: u64,
    /// Messages, oldest first; as many as were asked for.
    pub history: Vec<HistoryEntry>,
    /// Artifacts, when asked for.
    pub artifacts: Vec<Artifact>,
}
