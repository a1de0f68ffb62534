//! Deletes a task.

use harness_model::{TaskId, WorkflowId};
use harness_ports::{DeleteWhen, RecordKind, RowKind};
use rusqlite::{OptionalExtension, params};

use super::{BatchApply, Refused, publish::TaskRow, task_index};
use crate::encode::{Address, is_terminal_number, to_u64};

/// The stored row of a workflow.
struct WorkflowRow {
    id: i64,
    closed: bool,
}

impl BatchApply<'_> {
    /// Deletes everything of a task, if it may be deleted.
    pub(super) fn delete_task(&mut self, task_id: &TaskId, when: DeleteWhen) -> Result<(), Refused> {
        let workflow_id = WorkflowId::from(task_id);
        let workflow = self.workflow_row(&workflow_id)?;
        let task = self.find_task(task_id)?;
        if !self.may_be_deleted(&workflow_id, workflow.as_ref(), task.as_ref(), when)? {
            return Ok(());
        }
        (self.workflow, self.owner) = (None, None);
        let activities = "DELETE FROM activities WHERE workflow_id = ?1";
        self.count(RowKind::Activity, activities, params![workflow_id.as_str()])?;
        let timers = "DELETE FROM timers WHERE workflow_id = ?1";
        self.count(RowKind::Timer, timers, params![workflow_id.as_str()])?;
        if let Some(workflow) = workflow {
            self.delete_workflow(workflow.id)?;
        }
        for kind in RecordKind::ALL {
            let records = "DELETE FROM records WHERE task_id = ?1 AND kind = ?2";
            self.count(RowKind::Record(kind), records, params![task_id.as_str(), kind.name()])?;
        }
        match task {
            Some(task) => self.delete_content(task_id, &task),
            None => Ok(()),
        }
    }

    /// Deletes the records of a kind that were written last before a time, the oldest ones first.
    pub(super) fn delete_old_records(
        &mut self,
        kind: RecordKind,
        before: i64,
        limit: i64,
    ) -> Result<(), Refused> {
        let sql = "DELETE FROM records WHERE id IN (
                       SELECT id FROM records WHERE kind = ?1 AND written_at < ?2 ORDER BY written_at LIMIT ?3)";
        self.count(RowKind::Record(kind), sql, params![kind.name(), before, limit])
    }

    fn may_be_deleted(
        &self,
        workflow_id: &WorkflowId,
        workflow: Option<&WorkflowRow>,
        task: Option<&TaskRow>,
        when: DeleteWhen,
    ) -> Result<bool, Refused> {
        let before = match when {
            DeleteWhen::Always => return Ok(true),
            DeleteWhen::EndedBefore(before) => before.as_millis(),
        };
        let ended = task
            .and_then(|task| task.indexed.as_ref())
            .is_some_and(|indexed| is_terminal_number(indexed.state) && indexed.status_at < before);
        if !ended || workflow.is_some_and(|workflow| !workflow.closed) {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM activities WHERE workflow_id = ?1";
        Ok(!self.connection.prepare_cached(sql)?.exists([workflow_id.as_str()])?)
    }

    fn delete_workflow(&mut self, workflow: i64) -> Result<(), Refused> {
        let rows = [
            (RowKind::Event, "DELETE FROM journal WHERE workflow = ?1"),
            (RowKind::Snapshot, "DELETE FROM snapshots WHERE workflow = ?1"),
            (RowKind::Delivery, "DELETE FROM deliveries WHERE workflow = ?1"),
            (RowKind::Workflow, "DELETE FROM workflows WHERE id = ?1"),
        ];
        rows.into_iter().try_for_each(|(kind, sql)| self.count(kind, sql, params![workflow]))
    }

    /// Deletes the log, the record, and the blocks that nobody else keeps.
    fn delete_content(&mut self, task_id: &TaskId, task: &TaskRow) -> Result<(), Refused> {
        self.count(RowKind::LogEntry, "DELETE FROM log WHERE task = ?1", params![task.id])?;
        self.count(RowKind::HistoryEntry, "DELETE FROM history WHERE task = ?1", params![task.id])?;
        self.execute("DELETE FROM publish_keys WHERE task = ?1", params![task.id])?;
        let addresses: Vec<Address> = self
            .connection
            .prepare_cached(
                "DELETE FROM blocks WHERE id IN (
                     SELECT block FROM block_owners AS own WHERE owner = ?1 AND NOT EXISTS (
                         SELECT 1 FROM block_owners AS other WHERE other.block = own.block AND other.owner <> ?1))
                 RETURNING address",
            )?
            .query_map([task.id], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.add(RowKind::Block, addresses.len());
        self.done.removed_blocks.extend(addresses);
        self.execute("DELETE FROM block_owners WHERE owner = ?1", params![task.id])?;
        if let Some(indexed) = &task.indexed {
            task_index::forget(self.connection, task_id, indexed)?;
            self.add(RowKind::Task, 1);
        }
        self.execute("DELETE FROM tasks WHERE id = ?1", params![task.id])?;
        self.done.deleted_tasks.push(task_id.clone());
        Ok(())
    }

    fn workflow_row(&self, workflow_id: &WorkflowId) -> Result<Option<WorkflowRow>, Refused> {
        Ok(self
            .connection
            .prepare_cached("SELECT id, closed FROM workflows WHERE workflow_id = ?1")?
            .query_row([workflow_id.as_str()], |row| Ok(WorkflowRow { id: row.get(0)?, closed: row.get(1)? }))
            .optional()?)
    }

    /// Runs a deletion and counts the rows it removes.
    fn count(&mut self, kind: RowKind, sql: &str, params: impl rusqlite::Params) -> Result<(), Refused> {
        let rows = self.change(sql, params)?;
        self.add(kind, rows);
        Ok(())
    }

    fn add(&mut self, kind: RowKind, rows: usize) {
        if rows > 0 {
            *self.done.committed.deleted.entry(kind).or_default() += to_u64(super::publish::offset(rows));
        }
    }
}
