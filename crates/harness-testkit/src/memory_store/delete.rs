//! Deletes a task.

use harness_model::{TaskId, Timestamp, WorkflowId};
use harness_ports::{DeleteWhen, DeletedRows, Record, RecordKind, RowKind};

use super::tables::Tables;

/// Deletes everything of a task if it may be deleted, and counts it.
pub(super) fn delete(tables: &mut Tables, task_id: &TaskId, when: DeleteWhen, deleted: &mut DeletedRows) {
    let workflow_id = WorkflowId::from(task_id);
    if !may_be_deleted(tables, task_id, &workflow_id, when) {
        return;
    }
    let mut count = |kind, rows: usize| {
        if rows > 0 {
            *deleted.entry(kind).or_default() += rows as u64;
        }
    };
    if let Some(row) = tables.workflows.remove(&workflow_id) {
        count(RowKind::Workflow, 1);
        count(RowKind::Event, row.journal.len());
        count(RowKind::Snapshot, usize::from(row.snapshot.is_some()));
        count(RowKind::Activity, row.activities.len());
        count(RowKind::Timer, row.timers.len());
        count(RowKind::Delivery, row.deliveries.len());
        tables.announced.remove(&workflow_id);
        tables.due.retain(|(_, of, _)| *of != workflow_id);
    }
    if let Some(row) = tables.tasks.remove(task_id) {
        count(RowKind::Task, usize::from(row.record.is_some()));
        count(RowKind::LogEntry, row.log.len());
        count(RowKind::HistoryEntry, row.history.len());
        *tables.deletions.entry(task_id.clone()).or_default() += 1;
    }
    tables.records.retain(|record| {
        let of_task = record.task_id == *task_id;
        count(RowKind::Record(record.kind), usize::from(of_task));
        !of_task
    });
    tables.blocks.retain(|_, row| {
        let last = row.owners.remove(task_id) && row.owners.is_empty();
        count(RowKind::Block, usize::from(last));
        !last
    });
}

fn may_be_deleted(tables: &Tables, task_id: &TaskId, workflow_id: &WorkflowId, when: DeleteWhen) -> bool {
    let before = match when {
        DeleteWhen::Always => return true,
        DeleteWhen::EndedBefore(before) => before,
    };
    let record = tables.tasks.get(task_id).and_then(|row| row.record.as_ref());
    let ended = record.is_some_and(|r| r.status.state.is_terminal() && r.status_at < before);
    let workflow = tables.workflows.get(workflow_id);
    ended && workflow.is_none_or(|row| row.closed && row.activities.is_empty())
}

/// Deletes the oldest records of a kind.
pub(super) fn old_records(
    tables: &mut Tables,
    kind: RecordKind,
    before: Timestamp,
    limit: usize,
    deleted: &mut DeletedRows,
) {
    let written = |record: &Record| tables.written.get(&(record.kind, record.id.clone())).copied();
    let of_kind = tables.records.iter().filter(|record| record.kind == kind);
    let mut old: Vec<_> = of_kind.map(|record| (written(record), record.id.clone())).collect();
    old.retain(|(at, _)| at.is_some_and(|at| at < before));
    old.sort();
    old.truncate(limit);
    tables.records.retain(|record| record.kind != kind || !old.iter().any(|(_, id)| *id == record.id));
    if !old.is_empty() {
        *deleted.entry(RowKind::Record(kind)).or_default() += old.len() as u64;
    }
}
