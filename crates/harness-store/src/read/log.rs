//! Pages of a task's event log.

use harness_model::{LogEntry, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::decode;
use crate::{
    encode::{to_i64, to_u64},
    readers::{ReadError, snapshot},
};

/// A page of a log.
#[derive(Debug)]
pub(crate) struct LogPage {
    /// The entries, oldest first.
    pub(crate) entries: Vec<LogEntry>,
    /// Number after the last entry of the page; of the log when the page is empty.
    pub(crate) end: u64,
}

/// Entries from `from` on, at most `limit`.
pub(crate) fn log_page(
    connection: &Connection,
    task_id: &TaskId,
    from: u64,
    limit: usize,
) -> Result<LogPage, ReadError> {
    snapshot(connection, |connection| {
        let Some(task) = task_row_id(connection, task_id)? else {
            return Ok(LogPage { entries: Vec::new(), end: 0 });
        };
        let sql = "SELECT seq, at, event FROM log WHERE task = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![task, to_i64(from), limit])?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            entries.push(entry(row, task_id)?);
        }
        let end = match entries.last() {
            Some(last) => last.seq + 1,
            None => log_end(connection, task)?,
        };
        Ok(LogPage { entries, end })
    })
}

/// The row of a task.
fn task_row_id(connection: &Connection, task_id: &TaskId) -> Result<Option<i64>, ReadError> {
    Ok(connection
        .prepare_cached("SELECT id FROM tasks WHERE task_id = ?1")?
        .query_row([task_id.as_str()], |row| row.get(0))
        .optional()?)
}

/// Number of the entry that a task's log gets next.
pub(super) fn log_end(connection: &Connection, task: i64) -> Result<u64, ReadError> {
    let end = connection
        .prepare_cached("SELECT coalesce(max(seq) + 1, 0) FROM log WHERE task = ?1")?
        .query_row([task], |row| row.get(0))?;
    Ok(to_u64(end))
}

fn entry(row: &Row<'_>, task_id: &TaskId) -> Result<LogEntry, ReadError> {
    let seq = to_u64(row.get(0)?);
    let event = decode(row, 2, || format!("entry {seq} of the log of task {task_id}"))?;
    Ok(LogEntry { seq, at: Timestamp::from_millis(row.get(1)?), event })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_beyond_the_end_says_where_the_end_is() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrations::migrate(&mut connection, "memory".as_ref()).unwrap();
        let page = |from| log_page(&connection, &"t".into(), from, 2).unwrap();
        assert_eq!(page(7).end, 0, "an unknown task has an empty log");
        let insert = "INSERT INTO tasks (id, task_id) VALUES (1, 't');
                      INSERT INTO log (task, seq, at, kind, event) VALUES
                          (1, 0, 0, 1, '{\"type\":\"task_created.v1\"}'),
                          (1, 1, 0, 1, '{\"type\":\"task_created.v1\"}'),
                          (1, 2, 0, 1, '{\"type\":\"task_created.v1\"}');";
        connection.execute_batch(insert).unwrap();
        assert_eq!((page(0).entries.len(), page(0).end), (2, 2));
        assert_eq!((page(2).entries.len(), page(2).end), (1, 3));
        // A follower that starts too far ahead must not make others believe that there is more to read.
        assert_eq!((page(7).entries.len(), page(7).end), (0, 3));
    }
}
