//! Reads of a memory store.

use std::{cmp::Reverse, ops::Bound, sync::Arc};

use harness_model::{Artifact, LogEntry, TaskEvent, TaskId, TaskSnapshot, WorkflowId};
use harness_ports::{
    Census, OldestTasks, Record, RecordKind, StoredTimer, StoredWorkflow, TaskCursor, TaskFields, TaskPage,
    TaskQuery,
};

use super::tables::{Tables, TaskRow};

/// Matches are counted up to here.
const TOTAL_MAX: u64 = 10_000;

pub(super) fn workflow(tables: &Tables, id: &WorkflowId) -> Option<StoredWorkflow> {
    let row = tables.workflows.get(id)?;
    let first = row.snapshot.as_ref().map_or(0, |(seq, _)| *seq);
    let skipped = usize::try_from(first).unwrap_or(usize::MAX);
    Some(StoredWorkflow {
        workflow_type: row.workflow_type.clone(),
        closed: row.closed,
        snapshot: row.snapshot.clone(),
        tail: (first..).zip(row.journal.iter().skip(skipped).cloned()).collect(),
        next_seq: row.journal.len() as u64,
        activities: row.activities.clone(),
    })
}

pub(super) fn workflows_with_activities(
    tables: &Tables,
    after: Option<&WorkflowId>,
    limit: usize,
) -> Vec<WorkflowId> {
    let lower = after.map_or(Bound::Unbounded, Bound::Excluded);
    tables.announced.range::<WorkflowId, _>((lower, Bound::Unbounded)).take(limit).cloned().collect()
}

pub(super) fn next_timers(tables: &Tables, limit: usize) -> Vec<StoredTimer> {
    let stored = |(due_at, workflow_id, timer_id): &(_, WorkflowId, _)| StoredTimer {
        workflow_id: workflow_id.clone(),
        timer_id: harness_model::TimerId::clone(timer_id),
        due_at: *due_at,
    };
    tables.due.iter().take(limit).map(stored).collect()
}

pub(super) fn timers(tables: &Tables, workflow_id: &WorkflowId) -> Vec<StoredTimer> {
    let rows = tables.workflows.get(workflow_id).into_iter().flat_map(|row| &row.timers);
    let mut timers: Vec<_> = rows
        .map(|(timer_id, due_at)| StoredTimer {
            workflow_id: workflow_id.clone(),
            timer_id: timer_id.clone(),
            due_at: *due_at,
        })
        .collect();
    timers.sort_by(|a, b| (a.due_at, &a.timer_id).cmp(&(b.due_at, &b.timer_id)));
    timers
}

pub(super) fn log(tables: &Tables, id: &TaskId, after: Option<u64>, limit: usize) -> Vec<Arc<LogEntry>> {
    let Some(row) = tables.tasks.get(id) else { return Vec::new() };
    let first = after.map_or(0, |seq| seq.saturating_add(1));
    let skipped = usize::try_from(first).unwrap_or(usize::MAX);
    row.log.iter().skip(skipped).take(limit).cloned().collect()
}

pub(super) fn task(tables: &Tables, id: &TaskId, fields: TaskFields) -> Option<TaskSnapshot> {
    snapshot(tables.tasks.get(id)?, fields)
}

fn snapshot(row: &TaskRow, fields: TaskFields) -> Option<TaskSnapshot> {
    let record = row.record.clone()?;
    let skipped = fields.history.map_or(0, |newest| row.history.len().saturating_sub(newest));
    let mut artifacts = Vec::new();
    if fields.artifacts {
        for entry in &row.log {
            if let TaskEvent::ArtifactChanged(change) = &entry.event {
                Artifact::fold(&mut artifacts, change.clone());
            }
        }
    }
    Some(TaskSnapshot {
        record,
        status_seq: row.status_seq,
        last_seq: (row.log.len() as u64).saturating_sub(1),
        history: row.history.iter().skip(skipped).cloned().collect(),
        artifacts,
    })
}

pub(super) fn tasks(tables: &Tables, query: &TaskQuery) -> TaskPage {
    let mut matching: Vec<_> = tables.tasks.values().filter(|row| matches(row, query)).collect();
    matching.sort_by_key(|row| Reverse(position(row)));
    let total = TOTAL_MAX.min(matching.len() as u64);
    let after = query.after.as_ref().map(|cursor| (cursor.status_at, &cursor.task_id));
    let rest = matching.into_iter().filter(|row| after.is_none_or(|after| position(row) < Some(after)));
    let mut tasks: Vec<_> =
        rest.take(query.limit.saturating_add(1)).filter_map(|row| snapshot(row, query.fields)).collect();
    let more = tasks.len() > query.limit;
    tasks.truncate(query.limit);
    let last = tasks.last().filter(|_| more).map(|task| &task.record);
    let next = last.map(|record| TaskCursor { status_at: record.status_at, task_id: record.task_id.clone() });
    TaskPage { tasks, next, total }
}

pub(super) fn oldest_tasks(tables: &Tables, query: &OldestTasks) -> Vec<TaskCursor> {
    let records = tables.tasks.values().filter_map(|row| row.record.as_ref());
    let mut found: Vec<_> = records
        .filter(|record| query.states.contains(&record.status.state) && record.status_at < query.before)
        .map(|record| (record.status_at, &record.task_id))
        .filter(|found| query.after.as_ref().is_none_or(|after| *found > (after.status_at, &after.task_id)))
        .collect();
    found.sort_unstable();
    found.truncate(query.limit);
    let cursor = |(status_at, task_id): (_, &TaskId)| TaskCursor { status_at, task_id: task_id.clone() };
    found.into_iter().map(cursor).collect()
}

pub(super) fn census(tables: &Tables) -> Census {
    let mut census = Census { timers: tables.due.len() as u64, ..Census::default() };
    for record in tables.tasks.values().filter_map(|row| row.record.as_ref()) {
        *census.tasks.entry(record.status.state).or_default() += 1;
    }
    census.activities = tables.workflows.values().map(|row| row.activities.len() as u64).sum();
    for record in &tables.records {
        *census.records.entry(record.kind).or_default() += 1;
    }
    census
}

fn position(row: &TaskRow) -> Option<(harness_model::Timestamp, &TaskId)> {
    row.record.as_ref().map(|record| (record.status_at, &record.task_id))
}

fn matches(row: &TaskRow, query: &TaskQuery) -> bool {
    let Some(record) = &row.record else { return false };
    query.visible_to.as_ref().is_none_or(|id| record.extension.participant(id).is_some())
        && query.context_id.as_ref().is_none_or(|id| *id == record.context_id)
        && query.state.is_none_or(|state| state == record.status.state)
        && query.status_since.is_none_or(|since| record.status_at >= since)
}

pub(super) fn records(tables: &Tables, kind: RecordKind, task_id: &TaskId, limit: usize) -> Vec<Record> {
    let wanted = |record: &&Record| record.kind == kind && record.task_id == *task_id;
    tables.records.iter().filter(wanted).take(limit).cloned().collect()
}

pub(super) fn records_page(
    tables: &Tables,
    kind: RecordKind,
    after: Option<&str>,
    limit: usize,
) -> Vec<Record> {
    let wanted = |record: &&Record| record.kind == kind && after.is_none_or(|id| record.id.as_str() > id);
    let mut records: Vec<Record> = tables.records.iter().filter(wanted).cloned().collect();
    records.sort_by(|a, b| a.id.cmp(&b.id));
    records.truncate(limit);
    records
}
