//! Blocks, deliveries, timers, pages of logs, records.

use bytes::Bytes;
use harness_model::{LogEntry, TaskId, Timestamp, WorkflowId};
use harness_ports::{Record, RecordKind, StoreError, StoredTimer};
use sqlx::postgres::PgRow;

use super::{column, decode, sql_limit};
use crate::{
    encode::{Address, to_i64, to_u64},
    postgres::connect::Server,
};

const READING: &str = "reading";

/// A block.
pub(in crate::postgres) async fn block(
    server: &Server,
    address: &Address,
) -> Result<Option<Bytes>, StoreError> {
    let sql = "SELECT bytes FROM blocks WHERE address = $1";
    let rows = server.rows(READING, || sqlx::query(sql).bind(&address[..])).await?;
    rows.first().map(|row| column::<Vec<u8>>(row, "bytes").map(Bytes::from)).transpose()
}

/// The cursor of an accepted signal.
pub(in crate::postgres) async fn delivery(
    server: &Server,
    workflow_id: &WorkflowId,
    dedupe_key: &str,
) -> Result<Option<Option<u64>>, StoreError> {
    let sql = "SELECT cursor FROM deliveries
               WHERE workflow = (SELECT id FROM workflows WHERE workflow_id = $1) AND dedupe_key = $2";
    let rows = server.rows(READING, || sqlx::query(sql).bind(workflow_id.as_str()).bind(dedupe_key)).await?;
    rows.first().map(|row| Ok(column::<Option<i64>>(row, "cursor")?.map(to_u64))).transpose()
}

/// The timers that are due first.
pub(in crate::postgres) async fn next_timers(
    server: &Server,
    limit: usize,
) -> Result<Vec<StoredTimer>, StoreError> {
    let sql =
        "SELECT workflow_id, timer_id, due_at FROM timers ORDER BY due_at, workflow_id, timer_id LIMIT $1";
    let rows = server.rows(READING, || sqlx::query(sql).bind(sql_limit(limit))).await?;
    rows.iter().map(stored_timer).collect()
}

/// The timers of one workflow, the one that is due first first.
pub(in crate::postgres) async fn timers(
    server: &Server,
    id: &WorkflowId,
) -> Result<Vec<StoredTimer>, StoreError> {
    let sql =
        "SELECT workflow_id, timer_id, due_at FROM timers WHERE workflow_id = $1 ORDER BY due_at, timer_id";
    let rows = server.rows(READING, || sqlx::query(sql).bind(id.as_str())).await?;
    rows.iter().map(stored_timer).collect()
}

fn stored_timer(row: &PgRow) -> Result<StoredTimer, StoreError> {
    Ok(StoredTimer {
        workflow_id: column::<String>(row, "workflow_id")?.into(),
        timer_id: column::<String>(row, "timer_id")?.into(),
        due_at: Timestamp::from_millis(column(row, "due_at")?),
    })
}

/// Workflows that have announced activities, in order of id.
pub(in crate::postgres) async fn workflows_with_activities(
    server: &Server,
    after: Option<&WorkflowId>,
    limit: usize,
) -> Result<Vec<WorkflowId>, StoreError> {
    let sql =
        "SELECT DISTINCT workflow_id FROM activities WHERE workflow_id > $1 ORDER BY workflow_id LIMIT $2";
    let after = after.map_or("", WorkflowId::as_str);
    let rows = server.rows(READING, || sqlx::query(sql).bind(after).bind(sql_limit(limit))).await?;
    rows.iter().map(|row| column::<String>(row, "workflow_id").map(WorkflowId::from)).collect()
}

/// A page of a log.
#[derive(Debug)]
pub(in crate::postgres) struct LogPage {
    /// The row of the task; there is none when it is missing.
    pub(in crate::postgres) life: Option<i64>,
    /// The entries, oldest first.
    pub(in crate::postgres) entries: Vec<LogEntry>,
}

/// Entries of a log from `from` on.
pub(in crate::postgres) async fn log_page(
    server: &Server,
    task_id: &TaskId,
    from: u64,
    limit: usize,
) -> Result<LogPage, StoreError> {
    // One row at least when there is a task.
    let sql = "SELECT t.id, l.seq, l.at, l.event FROM tasks t
               LEFT JOIN LATERAL (SELECT * FROM log WHERE task = t.id AND seq >= $2 ORDER BY seq LIMIT $3) AS l
                   ON true
               WHERE t.task_id = $1 ORDER BY l.seq";
    let query = || sqlx::query(sql).bind(task_id.as_str()).bind(to_i64(from)).bind(sql_limit(limit));
    let rows = server.rows("reading a log", query).await?;
    let mut page = LogPage { life: None, entries: Vec::new() };
    for row in &rows {
        page.life = Some(column(row, "id")?);
        if let Some(seq) = column::<Option<i64>>(row, "seq")? {
            page.entries.push(entry(row, to_u64(seq), task_id)?);
        }
    }
    Ok(page)
}

fn entry(row: &PgRow, seq: u64, task_id: &TaskId) -> Result<LogEntry, StoreError> {
    let event = decode(column(row, "event")?, || format!("entry {seq} of the log of task {task_id}"))?;
    Ok(LogEntry { seq, at: Timestamp::from_millis(column(row, "at")?), event })
}

/// Records of a kind and task, oldest first.
pub(in crate::postgres) async fn records(
    server: &Server,
    kind: RecordKind,
    task_id: &TaskId,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let sql =
        "SELECT record_id, task_id, value FROM records WHERE kind = $1 AND task_id = $2 ORDER BY id LIMIT $3";
    let query = || sqlx::query(sql).bind(kind.name()).bind(task_id.as_str()).bind(sql_limit(limit));
    server.rows(READING, query).await?.iter().map(|row| record(row, kind)).collect()
}

/// Records of a kind in order of their ids.
pub(in crate::postgres) async fn records_page(
    server: &Server,
    kind: RecordKind,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    // Every id is greater than the empty text, which is no id.
    let after = after.unwrap_or_default();
    let sql = "SELECT record_id, task_id, value FROM records
               WHERE kind = $1 AND record_id > $2 ORDER BY record_id LIMIT $3";
    let query = || sqlx::query(sql).bind(kind.name()).bind(after).bind(sql_limit(limit));
    server.rows(READING, query).await?.iter().map(|row| record(row, kind)).collect()
}

fn record(row: &PgRow, kind: RecordKind) -> Result<Record, StoreError> {
    let id: String = column(row, "record_id")?;
    let value = decode(column(row, "value")?, || format!("record {id:?} of kind {}", kind.name()))?;
    Ok(Record { kind, id, task_id: TaskId::new(column::<String>(row, "task_id")?), value })
}
