//! Deletion of tasks, and what is counted about them.

use std::collections::BTreeMap;

use harness_model::{TaskState, Timestamp};

use crate::{RecordKind, TaskCursor};

/// When a task may be deleted. One that may not stays whole, and nothing is said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteWhen {
    /// Only if nothing of it goes on: its record is in a terminal state with a status older than this time, its workflow
    /// is closed or absent, and no activity of it is announced.
    EndedBefore(Timestamp),
    /// Whatever it does. Whoever hosts its workflow has to be told first.
    Always,
}

/// Kinds of rows that a deletion counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// The record of the task.
    Task,
    /// Its workflow.
    Workflow,
    /// An event of the workflow's journal.
    Event,
    /// The workflow's snapshot.
    Snapshot,
    /// An announced activity.
    Activity,
    /// A timer.
    Timer,
    /// The memory of a signal that was accepted.
    Delivery,
    /// An entry of the event log.
    LogEntry,
    /// An entry of `Task.history`.
    HistoryEntry,
    /// A record of this kind.
    Record(RecordKind),
    /// A block that no other task uses.
    Block,
}

impl RowKind {
    /// Stable name for people and scripts, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "tasks",
            Self::Workflow => "workflows",
            Self::Event => "events",
            Self::Snapshot => "snapshots",
            Self::Activity => "activities",
            Self::Timer => "timers",
            Self::Delivery => "deliveries",
            Self::LogEntry => "log_entries",
            Self::HistoryEntry => "history_entries",
            Self::Record(RecordKind::InboxAudit) => "inbox_audit",
            Self::Record(RecordKind::SpilledResult) => "spilled_results",
            Self::Record(RecordKind::PushConfig) => "push_configs",
            Self::Record(RecordKind::Monitor) => "monitor",
            Self::Record(RecordKind::PendingWake) => "pending_wakes",
            Self::Block => "blocks",
        }
    }
}

/// How many rows of each kind a deletion removed; kinds without any are left out.
pub type DeletedRows = BTreeMap<RowKind, u64>;

/// Which tasks [`crate::Store::oldest_tasks`] names.
#[derive(Clone, Debug)]
pub struct OldestTasks {
    /// Only tasks in one of these states.
    pub states: Vec<TaskState>,
    /// Only tasks whose status is older than this.
    pub before: Timestamp,
    /// Only tasks after this position.
    pub after: Option<TaskCursor>,
    /// At most this many.
    pub limit: usize,
}

/// How much of what a store holds. Exact, and of one moment as far as the store can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Tasks in each state; states without any are left out.
    pub tasks: BTreeMap<TaskState, u64>,
    /// Announced activities of all workflows.
    pub activities: u64,
    /// Timers of all workflows.
    pub timers: u64,
    /// Records of each kind; kinds without any are left out.
    pub records: BTreeMap<RecordKind, u64>,
}
