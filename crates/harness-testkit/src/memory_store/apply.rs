//! Applies a batch: first every condition is checked, then every change is made.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use harness_model::{HistoryEntry, LogEntry, TaskEvent, Timestamp, WorkflowId};
use harness_ports::{Committed, HistoryAppend, Publish, Record, StoreError, Write, WriteBatch};

use super::{
    delete,
    tables::{BlockRow, Tables, TaskRow, WorkflowRow},
};

/// What the writes before the one being checked would have changed.
#[derive(Default)]
struct Pending<'a> {
    created: HashSet<&'a WorkflowId>,
    next_seq: HashMap<&'a WorkflowId, u64>,
    delivered: HashSet<(&'a WorkflowId, &'a str)>,
}

/// Whether every condition of the batch holds.
pub(super) fn check(tables: &Tables, batch: &WriteBatch) -> Result<(), StoreError> {
    let mut pending = Pending::default();
    batch.writes.iter().try_for_each(|write| check_write(tables, &mut pending, write))
}

fn check_write<'a>(tables: &Tables, pending: &mut Pending<'a>, write: &'a Write) -> Result<(), StoreError> {
    match write {
        Write::CreateWorkflow { workflow_id, .. } => {
            let known = tables.workflows.contains_key(workflow_id) || !pending.created.insert(workflow_id);
            ensure(!known, || format!("workflow {workflow_id} exists"))
        }
        Write::AppendJournal { workflow_id, seq, .. } => {
            ensure_workflow(tables, pending, workflow_id)?;
            let stored = tables.workflows.get(workflow_id).map_or(0, |row| row.journal.len() as u64);
            let next = pending.next_seq.entry(workflow_id).or_insert(stored);
            ensure(*next == *seq, || format!("the journal of {workflow_id} is at {next}, not {seq}"))?;
            *next += 1;
            Ok(())
        }
        Write::RecordDelivery { workflow_id, dedupe_key, .. } => {
            ensure_workflow(tables, pending, workflow_id)?;
            let stored = tables.workflows.get(workflow_id);
            let known = stored.is_some_and(|row| row.deliveries.contains_key(dedupe_key))
                || !pending.delivered.insert((workflow_id, dedupe_key));
            ensure(!known, || format!("a delivery to {workflow_id} is known"))
        }
        Write::Publish(publish) => ensure(history_fits(publish), || {
            format!("a publication of {} refers to a status it does not have", publish.task_id)
        }),
        Write::SaveSnapshot { workflow_id, .. }
        | Write::AnnounceActivity { workflow_id, .. }
        | Write::StartTimer { workflow_id, .. }
        | Write::CloseWorkflow { workflow_id } => ensure_workflow(tables, pending, workflow_id),
        Write::ReplaceRecord { before, .. } => ensure(tables.records.contains(before), || {
            format!("record {:?} of kind {} is not as it was", before.id, before.kind.name())
        }),
        Write::RequireTask { task_id } => {
            let known = tables.tasks.get(task_id).is_some_and(|row| row.record.is_some());
            ensure(known, || format!("there is no task {task_id}"))
        }
        Write::PutBlock { .. }
        | Write::DeleteTask { .. }
        | Write::RemoveActivity { .. }
        | Write::RemoveTimer { .. }
        | Write::PutRecord(_)
        | Write::DeleteRecord { .. }
        | Write::DeleteOldRecords { .. } => Ok(()),
    }
}

fn ensure_workflow(tables: &Tables, pending: &Pending<'_>, id: &WorkflowId) -> Result<(), StoreError> {
    let known = tables.workflows.contains_key(id) || pending.created.contains(id);
    ensure(known, || format!("there is no workflow {id}"))
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), StoreError> {
    if holds { Ok(()) } else { Err(StoreError::Conflict { what: what() }) }
}

fn history_fits(publish: &Publish) -> bool {
    publish.history.iter().all(|addition| match addition {
        HistoryAppend::Message { .. } => true,
        HistoryAppend::Status { event } => {
            matches!(publish.events.get(*event), Some(TaskEvent::StatusChanged(_)))
        }
    })
}

/// Makes every change of a batch that was checked.
pub(super) fn apply(tables: &mut Tables, batch: WriteBatch) -> Committed {
    let mut committed = Committed::default();
    for write in batch.writes {
        apply_write(tables, batch.at, write, &mut committed);
    }
    committed
}

fn apply_write(tables: &mut Tables, at: Timestamp, write: Write, committed: &mut Committed) {
    match write {
        Write::PutBlock { block, task_id } => {
            let fresh = || BlockRow { bytes: block.bytes, owners: HashSet::new() };
            tables.blocks.entry(block.reference.id).or_insert_with(fresh).owners.insert(task_id);
        }
        Write::RequireTask { .. } => {}
        Write::DeleteTask { task_id, when } => delete::delete(tables, &task_id, when, &mut committed.deleted),
        Write::CreateWorkflow { workflow_id, workflow_type } => {
            tables.workflows.insert(workflow_id, WorkflowRow::new(workflow_type));
        }
        Write::AppendJournal { workflow_id, event, .. } => {
            with_row(tables, &workflow_id, |row| row.journal.push(event));
        }
        Write::SaveSnapshot { workflow_id, seq, state } => {
            with_row(tables, &workflow_id, |row| row.snapshot = Some((seq, state)));
        }
        Write::AnnounceActivity { workflow_id, task } => {
            with_row(tables, &workflow_id, |row| {
                row.activities.retain(|known| known.activity_id != task.activity_id);
                row.activities.push(task);
            });
            tables.announced.insert(workflow_id);
        }
        Write::RemoveActivity { workflow_id, activity_id } => {
            with_row(tables, &workflow_id, |row| row.activities.retain(|a| a.activity_id != activity_id));
            if tables.workflows.get(&workflow_id).is_none_or(|row| row.activities.is_empty()) {
                tables.announced.remove(&workflow_id);
            }
        }
        Write::StartTimer { workflow_id, timer_id, due_at } => {
            let mut before = None;
            with_row(tables, &workflow_id, |row| before = row.timers.insert(timer_id.clone(), due_at));
            if let Some(before) = before {
                tables.due.remove(&(before, workflow_id.clone(), timer_id.clone()));
            }
            tables.due.insert((due_at, workflow_id, timer_id));
        }
        Write::RemoveTimer { workflow_id, timer_id } => {
            let mut before = None;
            with_row(tables, &workflow_id, |row| before = row.timers.remove(&timer_id));
            if let Some(before) = before {
                tables.due.remove(&(before, workflow_id, timer_id));
            }
        }
        Write::RecordDelivery { workflow_id, dedupe_key, cursor } => {
            with_row(tables, &workflow_id, |row| {
                row.deliveries.insert(dedupe_key, cursor);
            });
        }
        Write::Publish(publish) => apply_publish(tables, at, *publish, committed),
        Write::PutRecord(record) => put_record(tables, at, record),
        Write::ReplaceRecord { before, value } => put_record(tables, at, Record { value, ..before }),
        Write::DeleteRecord { kind, id } => {
            tables.records.retain(|record| record.kind != kind || record.id != id);
        }
        Write::DeleteOldRecords { kind, before, limit } => {
            delete::old_records(tables, kind, before, limit, &mut committed.deleted);
        }
        Write::CloseWorkflow { workflow_id } => with_row(tables, &workflow_id, |row| row.closed = true),
    }
}

fn with_row(tables: &mut Tables, id: &WorkflowId, change: impl FnOnce(&mut WorkflowRow)) {
    if let Some(row) = tables.workflows.get_mut(id) {
        change(row);
    }
}

fn put_record(tables: &mut Tables, at: Timestamp, record: Record) {
    tables.written.insert((record.kind, record.id.clone()), at);
    let known = tables.records.iter_mut().find(|r| r.kind == record.kind && r.id == record.id);
    match known {
        Some(known) => *known = record,
        None => tables.records.push(record),
    }
}

fn apply_publish(tables: &mut Tables, at: Timestamp, publish: Publish, committed: &mut Committed) {
    let Publish { task_id, key, events, record, history } = publish;
    let row: &mut TaskRow = tables.tasks.entry(task_id.clone()).or_default();
    let ended = row.record.as_ref().is_some_and(|record| record.status.state.is_terminal());
    if (ended && record.is_none()) || !row.publish_keys.insert(key) {
        return;
    }
    let first_seq = row.log.len() as u64;
    for (seq, event) in (first_seq..).zip(events) {
        if matches!(event, TaskEvent::TaskCreated | TaskEvent::StatusChanged(_)) {
            row.status_seq = seq;
        }
        let entry = Arc::new(LogEntry { seq, at, event });
        row.log.push(Arc::clone(&entry));
        committed.entries.push((task_id.clone(), entry));
    }
    for addition in history {
        match addition {
            HistoryAppend::Message { message_id, block } => {
                row.history.push(HistoryEntry::Message { message_id, block });
            }
            HistoryAppend::Status { event } => {
                let seq = first_seq + event as u64;
                let entry = usize::try_from(seq).ok().and_then(|index| row.log.get(index));
                if let Some(TaskEvent::StatusChanged(status)) = entry.map(|entry| &entry.event) {
                    row.history.push(HistoryEntry::Status { seq, status: status.clone() });
                }
            }
        }
    }
    if record.is_some() {
        row.record = record;
    }
}
