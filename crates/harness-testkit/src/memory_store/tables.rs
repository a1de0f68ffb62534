//! What a memory store keeps.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use harness_model::{BlockId, HistoryEntry, LogEntry, TaskId, TaskRecord, TimerId, Timestamp, WorkflowId};
use harness_ports::{ActivityTask, HistoryEvent, Record, RecordKind};

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) blocks: HashMap<BlockId, BlockRow>,
    pub(super) workflows: BTreeMap<WorkflowId, WorkflowRow>,
    /// Ids of the workflows whose `activities` are not empty.
    pub(super) announced: BTreeSet<WorkflowId>,
    /// Every timer once more, in the order they are due.
    pub(super) due: BTreeSet<(Timestamp, WorkflowId, TimerId)>,
    pub(super) tasks: HashMap<TaskId, TaskRow>,
    /// In order of insertion.
    pub(super) records: Vec<Record>,
    /// When each record was written last.
    pub(super) written: HashMap<(RecordKind, String), Timestamp>,
    /// How often a task of an id was deleted.
    pub(super) deletions: HashMap<TaskId, u64>,
}

#[derive(Debug)]
pub(super) struct BlockRow {
    pub(super) bytes: Bytes,
    pub(super) owners: HashSet<TaskId>,
}

#[derive(Debug)]
pub(super) struct WorkflowRow {
    pub(super) workflow_type: String,
    pub(super) closed: bool,
    pub(super) snapshot: Option<(u64, Bytes)>,
    pub(super) journal: Vec<HistoryEvent>,
    pub(super) activities: Vec<ActivityTask>,
    pub(super) timers: BTreeMap<TimerId, Timestamp>,
    pub(super) deliveries: HashMap<String, Option<u64>>,
}

#[derive(Debug, Default)]
pub(super) struct TaskRow {
    pub(super) record: Option<TaskRecord>,
    pub(super) status_seq: u64,
    pub(super) log: Vec<Arc<LogEntry>>,
    pub(super) history: Vec<HistoryEntry>,
    pub(super) publish_keys: HashSet<String>,
}

impl Tables {
    /// Which task of this id the present or next one is.
    pub(super) fn life(&self, task_id: &TaskId) -> u64 {
        self.deletions.get(task_id).copied().unwrap_or(0)
    }
}

impl WorkflowRow {
    pub(super) fn new(workflow_type: String) -> Self {
        Self {
            workflow_type,
            closed: false,
            snapshot: None,
            journal: Vec::new(),
            activities: Vec::new(),
            timers: BTreeMap::new(),
            deliveries: HashMap::new(),
        }
    }
}
