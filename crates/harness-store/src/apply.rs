//! Applies one batch to the database, inside a transaction or savepoint of the caller.

mod delete;
mod publish;
mod task_index;

use harness_model::{TaskId, WorkflowId};
use harness_ports::Committed;
use rusqlite::{Connection, OptionalExtension, params};

use crate::encode::{Address, EncodedBatch, Op};

/// What applying a batch gave.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) committed: Committed,
    /// Tasks whose followers have nothing to wait for any more.
    pub(crate) deleted_tasks: Vec<TaskId>,
    pub(crate) removed_blocks: Vec<Address>,
}

/// Why a batch was not applied.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A condition of a write does not hold.
    Conflict(String),
    /// The database failed.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Applies every change of a batch, in order. On an error the caller takes back what was done.
pub(crate) fn apply(connection: &Connection, batch: &EncodedBatch) -> Result<Applied, Refused> {
    let mut batch_apply =
        BatchApply { connection, at: batch.at, workflow: None, owner: None, done: Applied::default() };
    for op in &batch.ops {
        batch_apply.apply(op)?;
    }
    Ok(batch_apply.done)
}

/// One batch on its way.
struct BatchApply<'a> {
    connection: &'a Connection,
    at: i64,
    /// The row of the last workflow that was looked up: most batches are about one.
    workflow: Option<(&'a WorkflowId, i64)>,
    /// The row of the last task that blocks were kept for.
    owner: Option<(&'a TaskId, i64)>,
    done: Applied,
}

impl<'a> BatchApply<'a> {
    fn apply(&mut self, op: &'a Op) -> Result<(), Refused> {
        match op {
            Op::PutBlock { address, bytes, task_id } => self.put_block(address, bytes, task_id),
            Op::RequireTask { task_id } => self.require_task(task_id),
            Op::DeleteTask { task_id, when } => self.delete_task(task_id, *when),
            Op::CreateWorkflow { workflow_id, workflow_type } => {
                self.create_workflow(workflow_id, workflow_type)
            }
            Op::AppendJournal { workflow_id, seq, event } => self.append_journal(workflow_id, *seq, event),
            Op::SaveSnapshot { workflow_id, seq, state } => {
                let workflow = self.workflow(workflow_id)?;
                self.execute(
                    "INSERT INTO snapshots (workflow, seq, state) VALUES (?1, ?2, ?3)
                     ON CONFLICT (workflow) DO UPDATE SET seq = excluded.seq, state = excluded.state",
                    params![workflow, seq, &state[..]],
                )
            }
            Op::AnnounceActivity { workflow_id, activity_id, task } => self.execute(
                "INSERT INTO activities (workflow_id, activity_id, task) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET task = excluded.task",
                params![workflow_id.as_str(), activity_id.as_str(), task],
            ),
            Op::RemoveActivity { workflow_id, activity_id } => self.execute(
                "DELETE FROM activities WHERE workflow_id = ?1 AND activity_id = ?2",
                params![workflow_id.as_str(), activity_id.as_str()],
            ),
            Op::StartTimer { workflow_id, timer_id, due_at } => self.execute(
                "INSERT INTO timers (workflow_id, timer_id, due_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET due_at = excluded.due_at",
                params![workflow_id.as_str(), timer_id.as_str(), due_at],
            ),
            Op::RemoveTimer { workflow_id, timer_id } => self.execute(
                "DELETE FROM timers WHERE workflow_id = ?1 AND timer_id = ?2",
                params![workflow_id.as_str(), timer_id.as_str()],
            ),
            Op::RecordDelivery { workflow_id, dedupe_key, cursor } => {
                self.record_delivery(workflow_id, dedupe_key, *cursor)
            }
            Op::Publish(publish) => self.publish(publish),
            Op::PutRecord { kind, id, task_id, value } => self.execute(
                "INSERT INTO records (kind, record_id, task_id, value, written_at) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (kind, record_id) DO UPDATE SET
                     task_id = excluded.task_id, value = excluded.value, written_at = excluded.written_at",
                params![kind, id, task_id.as_str(), value, self.at],
            ),
            Op::ReplaceRecord { kind, id, task_id, before, value } => {
                self.replace_kept_record(kind, id, task_id, [before, value])
            }
            Op::DeleteRecord { kind, id } => {
                self.execute("DELETE FROM records WHERE kind = ?1 AND record_id = ?2", params![kind, id])
            }
            Op::DeleteOldRecords { kind, before, limit } => self.delete_old_records(*kind, *before, *limit),
            Op::CloseWorkflow { workflow_id } => {
                let workflow = self.workflow(workflow_id)?;
                self.execute("UPDATE workflows SET closed = 1 WHERE id = ?1", params![workflow])
            }
        }
    }

    fn put_block(&mut self, address: &Address, bytes: &[u8], task_id: &'a TaskId) -> Result<(), Refused> {
        let owner = match self.owner {
            Some((known, row)) if known == task_id => row,
            Some(_) | None => self.task_row(task_id)?.id,
        };
        self.owner = Some((task_id, owner));
        let sql = "INSERT INTO blocks (address, bytes) VALUES (?1, ?2) ON CONFLICT (address) DO NOTHING";
        if self.change(sql, params![address, bytes])? > 0 {
            let block = self.connection.last_insert_rowid();
            let sql = "INSERT INTO block_owners (owner, block) VALUES (?1, ?2)";
            return self.execute(sql, params![owner, block]);
        }
        let sql = "INSERT INTO block_owners (owner, block) SELECT ?1, id FROM blocks WHERE address = ?2
                   ON CONFLICT DO NOTHING";
        self.execute(sql, params![owner, address])
    }

    fn require_task(&self, task_id: &TaskId) -> Result<(), Refused> {
        let sql = "SELECT 1 FROM tasks WHERE task_id = ?1 AND record IS NOT NULL";
        if self.connection.prepare_cached(sql)?.exists([task_id.as_str()])? {
            return Ok(());
        }
        Err(Refused::Conflict(format!("there is no task {task_id}")))
    }

    fn create_workflow(&mut self, workflow_id: &'a WorkflowId, workflow_type: &str) -> Result<(), Refused> {
        let sql = "INSERT INTO workflows (workflow_id, workflow_type) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        if self.change(sql, params![workflow_id.as_str(), workflow_type])? == 0 {
            return Err(Refused::Conflict(format!("workflow {workflow_id} exists")));
        }
        self.workflow = Some((workflow_id, self.connection.last_insert_rowid()));
        Ok(())
    }

    fn append_journal(&mut self, workflow_id: &'a WorkflowId, seq: i64, event: &str) -> Result<(), Refused> {
        let workflow = self.workflow(workflow_id)?;
        let sql = "INSERT INTO journal (workflow, seq, event) SELECT ?1, ?2, ?3
                   WHERE ?2 = (SELECT coalesce(max(seq) + 1, 0) FROM journal WHERE workflow = ?1)";
        if self.change(sql, params![workflow, seq, event])? == 0 {
            return Err(Refused::Conflict(format!("{seq} is not the next event of workflow {workflow_id}")));
        }
        Ok(())
    }

    fn record_delivery(
        &mut self,
        workflow_id: &'a WorkflowId,
        dedupe_key: &str,
        cursor: Option<i64>,
    ) -> Result<(), Refused> {
        let workflow = self.workflow(workflow_id)?;
        let sql = "INSERT INTO deliveries (workflow, dedupe_key, cursor) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO NOTHING";
        if self.change(sql, params![workflow, dedupe_key, cursor])? == 0 {
            return Err(Refused::Conflict(format!("workflow {workflow_id} knows the signal's key")));
        }
        Ok(())
    }

    /// A value that was read writes itself as the same text: JSON keeps the order of its keys here.
    fn replace_kept_record(
        &self,
        kind: &str,
        id: &str,
        task_id: &TaskId,
        [before, value]: [&String; 2],
    ) -> Result<(), Refused> {
        let sql = "UPDATE records SET value = ?5, written_at = ?6
                   WHERE kind = ?1 AND record_id = ?2 AND task_id = ?3 AND value = ?4";
        if self.change(sql, params![kind, id, task_id.as_str(), before, value, self.at])? == 0 {
            return Err(Refused::Conflict(format!("record {id:?} of kind {kind} is not as it was")));
        }
        Ok(())
    }

    /// The row of a workflow that must exist.
    fn workflow(&mut self, workflow_id: &'a WorkflowId) -> Result<i64, Refused> {
        if let Some((known, row)) = self.workflow
            && known == workflow_id
        {
            return Ok(row);
        }
        let found = self
            .connection
            .prepare_cached("SELECT id FROM workflows WHERE workflow_id = ?1")?
            .query_row([workflow_id.as_str()], |row| row.get(0))
            .optional()?;
        let row = found.ok_or_else(|| Refused::Conflict(format!("workflow {workflow_id} does not exist")))?;
        self.workflow = Some((workflow_id, row));
        Ok(row)
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<(), Refused> {
        self.change(sql, params).map(|_| ())
    }

    /// Runs a statement and returns how many rows it changed.
    fn change(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, Refused> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }
}
