//! What is counted, and what is oldest.

use std::collections::BTreeMap;

use harness_model::{TaskId, TaskState, Timestamp};
use harness_ports::{Census, OldestTasks, RecordKind, TaskCursor};
use rusqlite::{Connection, named_params};

use crate::{
    encode::{EVERYTHING, state_number, to_u64},
    readers::{ReadError, snapshot},
};

/// The tasks whose status is oldest: the merged heads of the states that are asked for.
pub(crate) fn oldest_tasks(
    connection: &Connection,
    query: &OldestTasks,
) -> Result<Vec<TaskCursor>, ReadError> {
    let sql = "SELECT status_at, task_id FROM task_index
               WHERE scope = :scope AND state = :state AND status_at < :before
                 AND (status_at, task_id) > (:after_at, :after_id)
               ORDER BY status_at, task_id LIMIT :limit";
    let (after_at, after_id) = match &query.after {
        Some(cursor) => (cursor.status_at.as_millis(), cursor.task_id.as_str()),
        None => (i64::MIN, ""),
    };
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    snapshot(connection, |connection| {
        let mut found: Vec<(i64, TaskId)> = Vec::new();
        let mut statement = connection.prepare_cached(sql)?;
        for state in &query.states {
            let params = named_params! {
                ":scope": EVERYTHING, ":state": state_number(*state), ":before": query.before.as_millis(),
                ":after_at": after_at, ":after_id": after_id, ":limit": limit,
            };
            let rows = statement
                .query_map(params, |row| Ok((row.get(0)?, TaskId::from(row.get::<_, String>(1)?))))?;
            for row in rows {
                found.push(row?);
            }
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(query.limit);
        let cursor = |(at, task_id)| TaskCursor { status_at: Timestamp::from_millis(at), task_id };
        Ok(found.into_iter().map(cursor).collect())
    })
}

/// How much there is of what.
pub(crate) fn census(connection: &Connection) -> Result<Census, ReadError> {
    snapshot(connection, |connection| {
        let count = |sql: &str| -> Result<u64, ReadError> {
            Ok(to_u64(connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?))
        };
        let mut census = Census {
            activities: count("SELECT count(*) FROM activities")?,
            timers: count("SELECT count(*) FROM timers")?,
            ..Census::default()
        };
        let in_state = "SELECT count(*) FROM task_index WHERE scope = ?1 AND state = ?2";
        census.tasks = counts(TaskState::ALL, |state| {
            connection
                .prepare_cached(in_state)?
                .query_row((EVERYTHING, state_number(state)), |row| row.get(0))
        })?;
        let of_kind = "SELECT count(*) FROM records WHERE kind = ?1";
        census.records = counts(RecordKind::ALL, |kind| {
            connection.prepare_cached(of_kind)?.query_row([kind.name()], |row| row.get(0))
        })?;
        Ok(census)
    })
}

/// The counts that are not zero.
fn counts<K: Ord + Copy, const N: usize>(
    keys: [K; N],
    mut count: impl FnMut(K) -> rusqlite::Result<i64>,
) -> Result<BTreeMap<K, u64>, ReadError> {
    let mut counts = BTreeMap::new();
    for key in keys {
        let rows = to_u64(count(key)?);
        if rows > 0 {
            counts.insert(key, rows);
        }
    }
    Ok(counts)
}
