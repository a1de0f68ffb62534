//! Decides what a batch writes, from the batch and what was found. Pure: the order of the changes matters here and
//! nowhere else, so that they can be written as sets.

mod deletion;
mod publish;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use harness_model::{LogEntry, TaskId, WorkflowId};
use harness_ports::RecordKind;

pub(super) use deletion::Deletion;

use super::found::{Found, TaskRow};
use crate::encode::{Address, EncodedBatch, EncodedRecord, Op};

/// Why a batch is not applied.
#[derive(Debug)]
pub(super) enum Refused {
    /// A condition of a write does not hold.
    Conflict(String),
    /// Stored data does not have the form it must have.
    Corrupt(String),
    /// The server failed, or the way to it.
    Server(sqlx::Error),
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        Self::Server(error)
    }
}

/// Kind and id of a record.
type RecordKey<'a> = (&'a str, &'a str);

/// Everything that a batch writes. Each key is there once.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub(super) blocks: BTreeMap<&'a Address, &'a Bytes>,
    /// Rows of tasks, and the blocks that they keep.
    pub(super) owners: BTreeSet<(i64, &'a Address)>,
    pub(super) journal: Vec<(i64, i64, &'a str)>,
    pub(super) snapshots: BTreeMap<i64, (i64, &'a Bytes)>,
    pub(super) deliveries: Vec<(i64, &'a str, Option<i64>)>,
    pub(super) closed: BTreeSet<i64>,
    /// By workflow and activity; `None` removes it.
    pub(super) activities: BTreeMap<(&'a str, &'a str), Option<&'a str>>,
    /// By workflow and timer; `None` removes it.
    pub(super) timers: BTreeMap<(&'a str, &'a str), Option<i64>>,
    /// Task, number, kind and text of each entry.
    pub(super) log: Vec<(i64, i64, i64, &'a str)>,
    pub(super) history: Vec<HistoryRow<'a>>,
    pub(super) keys: Vec<(i64, &'a str)>,
    /// By the id of the task.
    pub(super) tasks: BTreeMap<&'a str, TaskChange<'a>>,
    /// Deleted first; what is put again is a new record.
    pub(super) deleted_records: BTreeSet<RecordKey<'a>>,
    /// In the order in which they were first put.
    pub(super) records: Vec<RecordRow<'a>>,
    /// What goes, after everything else was written.
    pub(super) deletions: Vec<Deletion<'a>>,
    /// Kind, time and number of old records that go.
    pub(super) sweeps: Vec<(RecordKind, i64, i64)>,
    /// Every log entry the batch adds.
    pub(super) entries: Vec<(TaskId, Arc<LogEntry>)>,
}

/// A row of a history.
#[derive(Debug)]
pub(super) struct HistoryRow<'a> {
    pub(super) task: i64,
    pub(super) position: i64,
    pub(super) message_id: Option<&'a str>,
    pub(super) address: Option<&'a [u8]>,
    pub(super) bytes: Option<i64>,
    pub(super) status_seq: Option<i64>,
}

/// What becomes of the row of a task.
#[derive(Debug)]
pub(super) struct TaskChange<'a> {
    pub(super) row: i64,
    pub(super) next_seq: i64,
    pub(super) next_position: i64,
    pub(super) status_seq: i64,
    /// The new record, if there is one.
    pub(super) record: Option<&'a EncodedRecord>,
    /// Scopes that the task leaves.
    pub(super) left: Vec<String>,
    /// Scopes in which it is new or moves.
    pub(super) entered: Vec<&'a str>,
}

/// A record that is kept.
#[derive(Debug)]
pub(super) struct RecordRow<'a> {
    pub(super) key: RecordKey<'a>,
    pub(super) task_id: &'a str,
    pub(super) value: &'a str,
}

/// Decides.
pub(super) fn plan(batch: &EncodedBatch, found: Found) -> Result<Plan<'_>, Refused> {
    let mut planning = Planning { at: batch.at, found, plan: Plan::default() };
    for op in &batch.ops {
        planning.add(op)?;
    }
    planning.settle_index()?;
    Ok(planning.plan)
}

/// A plan on its way; what was found is kept in step with it.
struct Planning<'a> {
    at: i64,
    found: Found,
    plan: Plan<'a>,
}

impl<'a> Planning<'a> {
    fn add(&mut self, op: &'a Op) -> Result<(), Refused> {
        match op {
            Op::PutBlock { address, bytes, task_id } => {
                let owner = self.task(task_id)?.row;
                self.plan.blocks.insert(address, bytes);
                self.plan.owners.insert((owner, address));
            }
            Op::RequireTask { task_id } => self.require(task_id)?,
            Op::DeleteTask { task_id, when } => self.delete(task_id, *when),
            Op::CreateWorkflow { workflow_id, .. } => self.create(workflow_id)?,
            Op::AppendJournal { workflow_id, seq, event } => self.append(workflow_id, *seq, event)?,
            Op::SaveSnapshot { workflow_id, seq, state } => {
                let row = self.workflow(workflow_id)?;
                self.plan.snapshots.insert(row, (*seq, state));
            }
            Op::AnnounceActivity { workflow_id, activity_id, task } => {
                self.plan.activities.insert((workflow_id.as_str(), activity_id.as_str()), Some(task));
            }
            Op::RemoveActivity { workflow_id, activity_id } => {
                self.plan.activities.insert((workflow_id.as_str(), activity_id.as_str()), None);
            }
            Op::StartTimer { workflow_id, timer_id, due_at } => {
                self.plan.timers.insert((workflow_id.as_str(), timer_id.as_str()), Some(*due_at));
            }
            Op::RemoveTimer { workflow_id, timer_id } => {
                self.plan.timers.insert((workflow_id.as_str(), timer_id.as_str()), None);
            }
            Op::RecordDelivery { workflow_id, dedupe_key, cursor } => {
                self.deliver(workflow_id, dedupe_key, *cursor)?;
            }
            Op::Publish(publish) => self.publish(publish)?,
            Op::PutRecord { kind, id, task_id, value } => self.put((kind, id), task_id.as_str(), value),
            Op::ReplaceRecord { kind, id, task_id, before, value } => {
                self.replace((kind, id), task_id.as_str(), [before, value])?;
            }
            Op::DeleteRecord { kind, id } => {
                let key: RecordKey<'a> = (kind, id);
                self.plan.records.retain(|record| record.key != key);
                self.plan.deleted_records.insert(key);
            }
            Op::DeleteOldRecords { kind, before, limit } => self.plan.sweeps.push((*kind, *before, *limit)),
            Op::CloseWorkflow { workflow_id } => {
                let row = self.workflow(workflow_id)?;
                self.plan.closed.insert(row);
            }
        }
        Ok(())
    }

    fn create(&mut self, id: &WorkflowId) -> Result<(), Refused> {
        match self.found.workflows.get_mut(id.as_str()) {
            Some(workflow) if workflow.awaited => {
                workflow.awaited = false;
                Ok(())
            }
            Some(_) | None => Err(Refused::Conflict(format!("workflow {id} exists"))),
        }
    }

    fn append(&mut self, id: &WorkflowId, seq: i64, event: &'a str) -> Result<(), Refused> {
        let row = self.workflow(id)?;
        match self.found.workflows.get_mut(id.as_str()) {
            Some(workflow) if workflow.next_seq == seq => workflow.next_seq += 1,
            Some(_) | None => {
                return Err(Refused::Conflict(format!("{seq} is not the next event of workflow {id}")));
            }
        }
        self.plan.journal.push((row, seq, event));
        Ok(())
    }

    fn deliver(&mut self, id: &WorkflowId, key: &'a str, cursor: Option<i64>) -> Result<(), Refused> {
        let row = self.workflow(id)?;
        if !self.found.deliveries.insert((row, key.to_owned())) {
            return Err(Refused::Conflict(format!("workflow {id} knows the signal's key")));
        }
        self.plan.deliveries.push((row, key, cursor));
        Ok(())
    }

    fn put(&mut self, key: RecordKey<'a>, task_id: &'a str, value: &'a str) {
        match self.plan.records.iter_mut().find(|record| record.key == key) {
            Some(record) => (record.task_id, record.value) = (task_id, value),
            None => self.plan.records.push(RecordRow { key, task_id, value }),
        }
    }

    /// A value that was read writes itself as the same text: JSON keeps the order of its keys here.
    fn replace(
        &mut self,
        key: RecordKey<'a>,
        task_id: &'a str,
        [before, value]: [&'a str; 2],
    ) -> Result<(), Refused> {
        let planned = self.plan.records.iter().find(|record| record.key == key);
        let now = match planned {
            Some(record) => Some((record.task_id, record.value)),
            None if self.plan.deleted_records.contains(&key) => None,
            None => {
                let kept = self.found.records.get(&(key.0.to_owned(), key.1.to_owned()));
                kept.map(|(task_id, value)| (task_id.as_str(), value.as_str()))
            }
        };
        if now != Some((task_id, before)) {
            let (kind, id) = key;
            return Err(Refused::Conflict(format!("record {id:?} of kind {kind} is not as it was")));
        }
        self.put(key, task_id, value);
        Ok(())
    }

    fn require(&self, id: &TaskId) -> Result<(), Refused> {
        let planned = self.plan.tasks.get(id.as_str()).is_some_and(|change| change.record.is_some());
        if planned || self.task(id).is_ok_and(|task| task.indexed.is_some()) {
            return Ok(());
        }
        Err(Refused::Conflict(format!("there is no task {id}")))
    }

    /// The row of a task; it was made when it was missing.
    fn task(&self, id: &TaskId) -> Result<&TaskRow, Refused> {
        let task = self.found.tasks.get(id.as_str());
        task.ok_or_else(|| Refused::Corrupt(format!("task {id} has no row")))
    }

    /// The row of a workflow that must exist by now.
    fn workflow(&self, id: &WorkflowId) -> Result<i64, Refused> {
        match self.found.workflows.get(id.as_str()) {
            Some(workflow) if !workflow.awaited => Ok(workflow.row),
            Some(_) | None => Err(Refused::Conflict(format!("workflow {id} does not exist"))),
        }
    }
}
