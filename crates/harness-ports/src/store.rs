//! The store port: blocks, journals, event logs, the task index and records.

use std::sync::Arc;

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use harness_model::{
    BlockId, ContextId, ErrorCode, LogEntry, ParticipantId, TaskId, TaskSnapshot, TaskState, TimerId,
    Timestamp, WorkflowId, codes,
};
use serde_json::Value;

use crate::{ActivityTask, Census, Committed, HistoryEvent, OldestTasks, WriteBatch};

/// Entries of a task's log from a cursor on, then the ones to come. Ends with an error, or when the task is deleted.
pub type LogStream = BoxStream<'static, Result<Arc<LogEntry>, StoreError>>;

/// Keeps everything.
///
/// Contract:
/// - `commit` is atomic and durable when it returns `Ok`: it survives the loss of the process and of power. On an error
///   nothing of the batch is kept. Batches that are awaited one after another apply in that order.
/// - Log entries of a task are numbered 0, 1, 2, ... without gaps, in the order of the commits.
/// - A reader sees a whole batch or nothing of it, and only durable ones.
/// - `follow` yields every entry after the cursor once, in order, whatever the speed of the reader; a slow reader costs
///   reads, never memory that grows, and never slows a writer. It ends, without an error, soon after the task was
///   deleted; it begins with the call of `follow` and not with its first poll, so that whoever follows first and looks for
///   the task then never waits for one that is gone.
/// - Futures may be dropped at any time; a commit that was begun then still happens whole or not at all.
pub trait Store: Send + Sync {
    /// Applies a batch.
    /// Errors: `Conflict` when a condition of one of its writes does not hold.
    fn commit(&self, batch: WriteBatch) -> BoxFuture<'static, Result<Committed, StoreError>>;

    /// The bytes of a block.
    fn block<'a>(&'a self, id: &'a BlockId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>>;

    /// A workflow with everything needed to go on.
    fn workflow<'a>(
        &'a self,
        id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Option<StoredWorkflow>, StoreError>>;

    /// Workflows that have announced activities, in order of id, after `after`; at most `limit`.
    fn workflows_with_activities<'a>(
        &'a self,
        after: Option<&'a WorkflowId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<WorkflowId>, StoreError>>;

    /// The timers that are due first; at most `limit`.
    fn next_timers(&self, limit: usize) -> BoxFuture<'_, Result<Vec<StoredTimer>, StoreError>>;

    /// Every timer of one workflow, the one that is due first first.
    fn timers<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Vec<StoredTimer>, StoreError>> {
        Box::pin(async move {
            let mut timers = self.next_timers(usize::MAX).await?;
            timers.retain(|timer| timer.workflow_id == *workflow_id);
            Ok(timers)
        })
    }

    /// Whether a signal with this key was accepted: `Some(cursor of that time)`.
    fn delivery<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
        dedupe_key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Option<u64>>, StoreError>>;

    /// Log entries after `after` (`None`: from the start), oldest first; at most `limit`.
    fn log<'a>(
        &'a self,
        task_id: &'a TaskId,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, StoreError>>;

    /// Log entries after `after`, then the ones to come.
    fn follow(&self, task_id: &TaskId, after: Option<u64>) -> LogStream;

    /// A task as it is now.
    fn task<'a>(
        &'a self,
        task_id: &'a TaskId,
        fields: TaskFields,
    ) -> BoxFuture<'a, Result<Option<TaskSnapshot>, StoreError>>;

    /// Tasks that match, newest status first (ties: greater id first).
    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<TaskPage, StoreError>>;

    /// Tasks whose state and status time match, oldest status first (ties: lesser id first).
    fn oldest_tasks(&self, query: OldestTasks) -> BoxFuture<'_, Result<Vec<TaskCursor>, StoreError>>;

    /// Counts what the store holds. Costs a walk over an index of everything: for now and then, not for a request.
    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>>;

    /// Records of a kind and task, oldest first; at most `limit`.
    fn records<'a>(
        &'a self,
        kind: RecordKind,
        task_id: &'a TaskId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>>;

    /// Records of a kind, of every task, in order of their ids (by bytes), after the id `after`; at most `limit`.
    fn records_page<'a>(
        &'a self,
        kind: RecordKind,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>>;

    /// A random value made once with the store: 32 hex digits. Salts the ids made from what senders choose.
    fn install_id(&self) -> &str;
}

/// A stored workflow.
#[derive(Clone, Debug)]
pub struct StoredWorkflow {
    /// Its versioned type.
    pub workflow_type: String,
    /// Whether it has ended.
    pub closed: bool,
    /// The newest snapshot and the number of events it includes.
    pub snapshot: Option<(u64, Bytes)>,
    /// Events after the snapshot, with their positions.
    pub tail: Vec<(u64, HistoryEvent)>,
    /// Position of the next event.
    pub next_seq: u64,
    /// Announced activities.
    pub activities: Vec<ActivityTask>,
}

/// A stored timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTimer {
    /// Whose.
    pub workflow_id: WorkflowId,
    /// Which one.
    pub timer_id: TimerId,
    /// When it is due.
    pub due_at: Timestamp,
}

/// Which parts of a task a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFields {
    /// The newest messages, at most this many; `None`: all of them.
    pub history: Option<usize>,
    /// Whether artifacts are wanted.
    pub artifacts: bool,
}

impl TaskFields {
    /// Neither messages nor artifacts.
    pub const BARE: Self = Self { history: Some(0), artifacts: false };
    /// Everything.
    pub const ALL: Self = Self { history: None, artifacts: true };
}

/// Which tasks a listing returns.
#[derive(Clone, Debug)]
pub struct TaskQuery {
    /// Only tasks this participant takes part in; `None` is for operators.
    pub visible_to: Option<ParticipantId>,
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks whose status is at least this new.
    pub status_since: Option<Timestamp>,
    /// Only tasks after this position.
    pub after: Option<TaskCursor>,
    /// At most this many.
    pub limit: usize,
    /// Which parts to return.
    pub fields: TaskFields,
}

/// Position in a listing; stable when tasks are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCursor {
    /// Status time of the last task of a page.
    pub status_at: Timestamp,
    /// Id of that task.
    pub task_id: TaskId,
}

/// One page of a listing.
#[derive(Clone, Debug)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskSnapshot>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<TaskCursor>,
    /// How many tasks match in all, cursor aside; counted up to 10,000.
    pub total: u64,
}

/// A record: something kept for audit or for later, outside of journals and logs.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What it is.
    pub kind: RecordKind,
    /// Unique within the kind.
    pub id: String,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// Its content.
    pub value: Value,
}

impl Record {
    /// Id of the record with what the last tick saw.
    pub const MONITOR_ID: &'static str = "latest";

    /// What the last tick saw, for whichever process is asked.
    pub fn monitor(value: Value) -> Self {
        Self::of_process(Self::MONITOR_ID, value)
    }

    /// A record of no task.
    pub fn of_process(id: &str, value: Value) -> Self {
        Self { kind: RecordKind::Monitor, id: id.to_owned(), task_id: Self::no_task(), value }
    }

    /// The task id of records of no task. Ids of tasks are given by servers, and none is like this.
    pub fn no_task() -> TaskId {
        TaskId::from("_monitor")
    }
}

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// One row per message that reached a task's inbox.
    InboxAudit,
    /// A tool result too large for the model, behind its handle.
    SpilledResult,
    /// A push notification configuration.
    PushConfig,
    /// What processes say about themselves, such as [`Record::monitor`]. Of no task: its task id is one that no task has.
    Monitor,
    /// A note of an engine that somebody still has to be told of what is left to do for a workflow.
    PendingWake,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::InboxAudit, Self::SpilledResult, Self::PushConfig, Self::Monitor, Self::PendingWake];

    /// Stable name in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::InboxAudit => "inbox_audit",
            Self::SpilledResult => "spilled_result",
            Self::PushConfig => "push_config",
            Self::Monitor => "monitor",
            Self::PendingWake => "pending_wake",
        }
    }
}

/// Why a store could not do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A condition of a write does not hold; nothing was written.
    #[error("the store has moved on: {what}")]
    Conflict {
        /// Which condition.
        what: String,
    },
    /// The store is busy, full or gone; nothing was written.
    #[error("the store is not available: {what}")]
    Unavailable {
        /// What was being done.
        what: String,
        /// Why, for the log.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Another process owns the store.
    #[error("the store {path} is in use by another tiny-harness process; stop it, or choose another path")]
    Locked {
        /// The file.
        path: String,
    },
    /// Stored data cannot be read by this build.
    #[error("stored data cannot be read: {what}")]
    Corrupt {
        /// Which data, and why.
        what: String,
    },
}

impl StoreError {
    /// The stable code for people and peers.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Conflict { .. } | Self::Unavailable { .. } => codes::STORE_WRITE_FAILED,
            Self::Locked { .. } => codes::STORE_LOCKED,
            Self::Corrupt { .. } => codes::STORE_UNREADABLE,
        }
    }
}
