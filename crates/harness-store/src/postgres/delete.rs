//! Deletes what a plan says that goes, and counts it.

use harness_model::TaskId;
use harness_ports::{DeletedRows, RecordKind, RowKind};
use sqlx::{PgConnection, Row, postgres::PgRow};

use super::{
    connect::step,
    plan::{Deletion, Plan},
};
use crate::encode::{Address, to_u64};

/// What a batch deleted.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    pub(super) rows: DeletedRows,
    /// Tasks whose followers have nothing to wait for any more, with the rows that they had.
    pub(super) tasks: Vec<(TaskId, i64)>,
    pub(super) blocks: Vec<Address>,
}

/// Deletes, task by task.
pub(super) async fn delete(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<Deleted> {
    let mut deleted = Deleted::default();
    for deletion in &plan.deletions {
        if !deletion.only_idle || step(is_idle(connection, deletion.task_id)).await? {
            delete_task(connection, deletion, &mut deleted).await?;
        }
    }
    for (kind, before, limit) in &plan.sweeps {
        let sql = "DELETE FROM records WHERE id IN (
                       SELECT id FROM records WHERE kind = $1 AND written_at < $2
                       ORDER BY written_at, id LIMIT $3 FOR UPDATE)";
        let query = sqlx::query(sql).bind(kind.name()).bind(before).bind(limit);
        let swept = step(query.execute(&mut *connection)).await?.rows_affected();
        deleted.add(RowKind::Record(*kind), swept);
    }
    Ok(deleted)
}

async fn is_idle(connection: &mut PgConnection, task_id: &TaskId) -> sqlx::Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM activities WHERE workflow_id = $1)";
    sqlx::query_scalar(sql).bind(task_id.as_str()).fetch_one(connection).await
}

async fn delete_task(
    connection: &mut PgConnection,
    deletion: &Deletion<'_>,
    deleted: &mut Deleted,
) -> sqlx::Result<()> {
    let kinds: Vec<&str> = RecordKind::ALL.iter().map(|kind| kind.name()).collect();
    // No row has the number 0.
    let query = sqlx::query(DELETE_ROWS)
        .bind(deletion.task_id.as_str())
        .bind(deletion.workflow.unwrap_or(0))
        .bind(deletion.task.unwrap_or(0))
        .bind(kinds);
    let row = step(query.fetch_one(&mut *connection)).await?;
    deleted.count(&row)?;
    let Some(task) = deletion.task else { return Ok(()) };
    if deletion.recorded {
        deleted.add(RowKind::Task, 1);
    }
    deleted.tasks.push((deletion.task_id.clone(), task));
    delete_blocks(connection, task, deleted).await
}

/// Everything of a task but its blocks.
const DELETE_ROWS: &str = "WITH
    activities_gone AS (DELETE FROM activities WHERE workflow_id = $1 RETURNING 1),
    timers_gone AS (DELETE FROM timers WHERE workflow_id = $1 RETURNING 1),
    events_gone AS (DELETE FROM journal WHERE workflow = $2 RETURNING 1),
    snapshots_gone AS (DELETE FROM snapshots WHERE workflow = $2 RETURNING 1),
    deliveries_gone AS (DELETE FROM deliveries WHERE workflow = $2 RETURNING 1),
    workflows_gone AS (DELETE FROM workflows WHERE id = $2 RETURNING 1),
    entries_gone AS (DELETE FROM log WHERE task = $3 RETURNING 1),
    history_gone AS (DELETE FROM history WHERE task = $3 RETURNING 1),
    keys_gone AS (DELETE FROM publish_keys WHERE task = $3),
    index_gone AS (DELETE FROM task_index WHERE task = $3),
    tasks_gone AS (DELETE FROM tasks WHERE id = $3),
    records_gone AS (DELETE FROM records WHERE task_id = $1 RETURNING kind)
SELECT
    (SELECT count(*) FROM activities_gone) AS activities,
    (SELECT count(*) FROM timers_gone) AS timers,
    (SELECT count(*) FROM events_gone) AS events,
    (SELECT count(*) FROM snapshots_gone) AS snapshots,
    (SELECT count(*) FROM deliveries_gone) AS deliveries,
    (SELECT count(*) FROM workflows_gone) AS workflows,
    (SELECT count(*) FROM entries_gone) AS entries,
    (SELECT count(*) FROM history_gone) AS history,
    ARRAY(SELECT (SELECT count(*) FROM records_gone WHERE kind = k.kind)
          FROM unnest($4::text[]) WITH ORDINALITY AS k (kind, n) ORDER BY n) AS records";

/// Deletes the blocks that nobody else keeps. They are locked in a statement of its own: the next one sees who came to
/// keep them until then.
async fn delete_blocks(connection: &mut PgConnection, task: i64, deleted: &mut Deleted) -> sqlx::Result<()> {
    let lock = "SELECT b.id FROM block_owners o JOIN blocks b ON b.id = o.block WHERE o.owner = $1
                ORDER BY b.address FOR UPDATE OF b";
    if step(sqlx::query(lock).bind(task).fetch_all(&mut *connection)).await?.is_empty() {
        return Ok(());
    }
    let sql = "WITH given_up AS (DELETE FROM block_owners WHERE owner = $1)
               DELETE FROM blocks WHERE id IN (
                   SELECT block FROM block_owners own WHERE owner = $1 AND NOT EXISTS (
                       SELECT 1 FROM block_owners other WHERE other.block = own.block AND other.owner <> $1))
               RETURNING address";
    let addresses: Vec<Vec<u8>> = step(sqlx::query_scalar(sql).bind(task).fetch_all(connection)).await?;
    deleted.add(RowKind::Block, addresses.len() as u64);
    deleted.blocks.extend(addresses.into_iter().filter_map(|address| Address::try_from(address).ok()));
    Ok(())
}

impl Deleted {
    fn count(&mut self, row: &PgRow) -> sqlx::Result<()> {
        for (kind, column) in [
            (RowKind::Activity, "activities"),
            (RowKind::Timer, "timers"),
            (RowKind::Event, "events"),
            (RowKind::Snapshot, "snapshots"),
            (RowKind::Delivery, "deliveries"),
            (RowKind::Workflow, "workflows"),
            (RowKind::LogEntry, "entries"),
            (RowKind::HistoryEntry, "history"),
        ] {
            self.add(kind, to_u64(row.try_get(column)?));
        }
        let records: Vec<i64> = row.try_get("records")?;
        for (kind, rows) in RecordKind::ALL.into_iter().zip(records) {
            self.add(RowKind::Record(kind), to_u64(rows));
        }
        Ok(())
    }

    fn add(&mut self, kind: RowKind, rows: u64) {
        if rows > 0 {
            *self.rows.entry(kind).or_default() += rows;
        }
    }
}
