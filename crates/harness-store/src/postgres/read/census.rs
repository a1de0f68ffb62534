//! What is counted, and what is oldest.

use std::collections::BTreeMap;

use harness_model::{TaskId, TaskState, Timestamp};
use harness_ports::{Census, OldestTasks, RecordKind, StoreError, TaskCursor};
use sqlx::postgres::PgRow;

use super::{column, sql_limit};
use crate::{
    encode::{EVERYTHING, state_number, to_u64},
    postgres::connect::Server,
};

/// The tasks whose status is oldest: the merged heads of the states that are asked for.
pub(in crate::postgres) async fn oldest_tasks(
    server: &Server,
    query: &OldestTasks,
) -> Result<Vec<TaskCursor>, StoreError> {
    let sql = "SELECT head.* FROM unnest($1::bigint[]) AS wanted (state) CROSS JOIN LATERAL (
                   SELECT status_at, task_id FROM task_index
                   WHERE scope = $2 AND state = wanted.state AND status_at < $3
                     AND (status_at, task_id) > ($4, $5)
                   ORDER BY status_at, task_id LIMIT $6) AS head
               ORDER BY head.status_at, head.task_id LIMIT $6";
    let mut states: Vec<i64> = query.states.iter().copied().map(state_number).collect();
    states.sort_unstable();
    states.dedup();
    let (after_at, after_id) = match &query.after {
        Some(cursor) => (cursor.status_at.as_millis(), cursor.task_id.as_str()),
        None => (i64::MIN, ""),
    };
    let oldest = || {
        sqlx::query(sql)
            .bind(&states)
            .bind(EVERYTHING)
            .bind(query.before.as_millis())
            .bind(after_at)
            .bind(after_id)
            .bind(sql_limit(query.limit))
    };
    let rows = server.rows("looking for old tasks", oldest).await?;
    let cursor = |row: &PgRow| {
        Ok(TaskCursor {
            status_at: Timestamp::from_millis(column(row, "status_at")?),
            task_id: TaskId::new(column::<String>(row, "task_id")?),
        })
    };
    rows.iter().map(cursor).collect()
}

/// How much there is of what.
pub(in crate::postgres) async fn census(server: &Server) -> Result<Census, StoreError> {
    let sql =
        "SELECT (SELECT count(*) FROM activities) AS activities, (SELECT count(*) FROM timers) AS timers,
                   ARRAY(SELECT (SELECT count(*) FROM task_index WHERE scope = $1 AND state = s.state)
                         FROM unnest($2::bigint[]) WITH ORDINALITY AS s (state, n) ORDER BY n) AS tasks,
                   ARRAY(SELECT (SELECT count(*) FROM records WHERE kind = k.kind)
                         FROM unnest($3::text[]) WITH ORDINALITY AS k (kind, n) ORDER BY n) AS records";
    let states: Vec<i64> = TaskState::ALL.into_iter().map(state_number).collect();
    let kinds: Vec<&str> = RecordKind::ALL.iter().map(|kind| kind.name()).collect();
    let count = || sqlx::query(sql).bind(EVERYTHING).bind(&states).bind(&kinds);
    let rows = server.rows("counting", count).await?;
    let Some(row) = rows.first() else { return Ok(Census::default()) };
    Ok(Census {
        activities: to_u64(column(row, "activities")?),
        timers: to_u64(column(row, "timers")?),
        tasks: counts(TaskState::ALL, column(row, "tasks")?),
        records: counts(RecordKind::ALL, column(row, "records")?),
    })
}

/// The counts that are not zero.
fn counts<K: Ord, const N: usize>(keys: [K; N], counted: Vec<i64>) -> BTreeMap<K, u64> {
    keys.into_iter()
        .zip(counted)
        .filter(|(_, rows)| *rows > 0)
        .map(|(key, rows)| (key, to_u64(rows)))
        .collect()
}
