//! Changes of a store: a batch is applied whole or not at all.

use bytes::Bytes;
use harness_model::{
    ActivityId, BlockRef, LogEntry, MessageId, TaskEvent, TaskId, TaskRecord, TimerId, Timestamp, WorkflowId,
};
use serde_json::Value;
use std::sync::Arc;

use crate::{ActivityTask, DeleteWhen, DeletedRows, HistoryEvent, Record, RecordKind};

/// A block to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address; always that of the bytes.
    pub reference: BlockRef,
    /// The bytes.
    pub bytes: Bytes,
}

impl Block {
    /// The block that holds these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { reference: BlockRef::to(&bytes), bytes }
    }
}

/// One addition to a task's log, history and record.
///
/// Nothing follows the end of a task: a publication without a record (the words of a model call that was stopped) to a
/// task whose record is in a terminal state changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish {
    /// The task.
    pub task_id: TaskId,
    /// Publishing twice with one key changes nothing the second time. A workflow leaves it empty: the engine names the
    /// publication after the event that caused it.
    pub key: String,
    /// Entries for the event log; the store numbers them.
    pub events: Vec<TaskEvent>,
    /// The record from now on; `None` leaves it.
    pub record: Option<TaskRecord>,
    /// Additions to `Task.history`, in order.
    pub history: Vec<HistoryAppend>,
}

/// One addition to `Task.history`.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryAppend {
    /// A participant's message.
    Message {
        /// Its id.
        message_id: MessageId,
        /// The stored message.
        block: BlockRef,
    },
    /// The words of the status at this index of `Publish::events`.
    Status {
        /// Index into `Publish::events`; must be a `StatusChanged`.
        event: usize,
    },
}

/// One change.
#[derive(Clone, Debug)]
pub enum Write {
    /// Keeps a block for a task; keeping it twice is fine. The block stays as long as one of the tasks that kept it:
    /// whoever refers to a block of another task keeps it for its own as well.
    PutBlock {
        /// The block.
        block: Block,
        /// The task that uses it, or the workflow of this id. It may come to be later.
        task_id: TaskId,
    },
    /// Changes nothing. Conflict unless the task has a record, which holds until the batch is durable: the first write of
    /// a batch that must not bring a deleted task back, such as that of an activity.
    RequireTask {
        /// Which one.
        task_id: TaskId,
    },
    /// Deletes everything of a task, if it may be deleted: the workflow of its id with journal, snapshot, activities,
    /// timers and deliveries; its log, history, record and publication keys; every [`Record`] of it; its blocks that no
    /// other task keeps. Unknown ids are ignored. The id is then as if it had never been used: a workflow of this id may
    /// be created again, and its log begins with entry 0. A batch that deletes a task changes nothing else of it.
    DeleteTask {
        /// Which one.
        task_id: TaskId,
        /// What must hold; otherwise nothing happens.
        when: DeleteWhen,
    },
    /// Creates a workflow. Conflict when it exists.
    CreateWorkflow {
        /// Its id.
        workflow_id: WorkflowId,
        /// Its versioned type.
        workflow_type: String,
    },
    /// Appends to the journal. Conflict unless `seq` is the next number (from 0).
    AppendJournal {
        /// Whose journal.
        workflow_id: WorkflowId,
        /// Position.
        seq: u64,
        /// The event.
        event: HistoryEvent,
    },
    /// Keeps a snapshot that includes every event before `seq`; replaces the one before.
    SaveSnapshot {
        /// Whose.
        workflow_id: WorkflowId,
        /// Number of events included.
        seq: u64,
        /// The state.
        state: Bytes,
    },
    /// Announces an activity.
    AnnounceActivity {
        /// Whose.
        workflow_id: WorkflowId,
        /// The activity.
        task: ActivityTask,
    },
    /// Removes an announced activity: it ended or is no longer wanted. Unknown ids are ignored.
    RemoveActivity {
        /// Whose.
        workflow_id: WorkflowId,
        /// Which one.
        activity_id: ActivityId,
    },
    /// Starts a timer; replaces one of the same id.
    StartTimer {
        /// Whose.
        workflow_id: WorkflowId,
        /// Which one.
        timer_id: TimerId,
        /// When it is due.
        due_at: Timestamp,
    },
    /// Removes a timer. Unknown ids are ignored.
    RemoveTimer {
        /// Whose.
        workflow_id: WorkflowId,
        /// Which one.
        timer_id: TimerId,
    },
    /// Remembers that a signal with this key was accepted. Conflict when the key is known.
    RecordDelivery {
        /// Whose.
        workflow_id: WorkflowId,
        /// The signal's key.
        dedupe_key: String,
        /// The newest log entry from before it.
        cursor: Option<u64>,
    },
    /// Appends to a task's log, history and record. A known key makes it a no-op.
    Publish(Box<Publish>),
    /// Keeps a record; replaces one of the same kind and id.
    PutRecord(Record),
    /// Gives a record another value. Conflict unless there is a record of this kind and id with exactly this value.
    ReplaceRecord {
        /// The record as it was read.
        before: Record,
        /// Its value from now on.
        value: Value,
    },
    /// Removes a record. Unknown ids are ignored.
    DeleteRecord {
        /// What it is.
        kind: RecordKind,
        /// Which one.
        id: String,
    },
    /// Removes the records of a kind that were last put or replaced before a time, of every task, oldest first.
    DeleteOldRecords {
        /// What they are.
        kind: RecordKind,
        /// Only older ones; the age of a record is the time of the batch that wrote it last.
        before: Timestamp,
        /// At most this many.
        limit: usize,
    },
    /// Marks a workflow as ended.
    CloseWorkflow {
        /// Which one.
        workflow_id: WorkflowId,
    },
}

/// Changes that happen together.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    /// Time of every log entry and row of the batch.
    pub at: Timestamp,
    /// The changes, applied in order.
    pub writes: Vec<Write>,
}

impl WriteBatch {
    /// A batch of these changes.
    pub fn new(at: Timestamp, writes: Vec<Write>) -> Self {
        Self { at, writes }
    }
}

/// What a batch did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Committed {
    /// Every log entry the batch added, in order, with its task.
    pub entries: Vec<(TaskId, Arc<LogEntry>)>,
    /// What its deletions removed.
    pub deleted: DeletedRows,
}
