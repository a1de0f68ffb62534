//! A task as it is now.

use harness_model::{Artifact, HistoryEntry, StatusChange, TaskEvent, TaskId, TaskSnapshot};
use harness_ports::TaskFields;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{decode, log::log_end};
use crate::{
    encode::{KIND_ARTIFACT, message_entry, to_u64},
    readers::{ReadError, snapshot},
};

/// Log entries up to which a task is read in passing, artifacts and all. Most tasks are asked for right after one turn.
const SHORT_LOG: u64 = 64;

/// A task as [`task`] gives it, if what is asked for is small; `None` when it is too much to be read in passing.
pub(crate) fn small_task(
    connection: &Connection,
    task_id: &TaskId,
    fields: TaskFields,
) -> Result<Option<Option<TaskSnapshot>>, ReadError> {
    snapshot(connection, |connection| {
        let entries_max = if fields == TaskFields::BARE { u64::MAX } else { SHORT_LOG };
        task_up_to(connection, task_id, fields, entries_max)
    })
}

/// A task, over one state of the database. `None` until its first record was published.
pub(crate) fn task(
    connection: &Connection,
    task_id: &TaskId,
    fields: TaskFields,
) -> Result<Option<TaskSnapshot>, ReadError> {
    snapshot(connection, |connection| task_in(connection, task_id, fields))
}

/// The same inside of a transaction.
pub(super) fn task_in(
    connection: &Connection,
    task_id: &TaskId,
    fields: TaskFields,
) -> Result<Option<TaskSnapshot>, ReadError> {
    Ok(task_up_to(connection, task_id, fields, u64::MAX)?.flatten())
}

/// `None` when the log has more entries than that.
fn task_up_to(
    connection: &Connection,
    task_id: &TaskId,
    fields: TaskFields,
    entries_max: u64,
) -> Result<Option<Option<TaskSnapshot>>, ReadError> {
    let sql = "SELECT id, status_seq, record FROM tasks WHERE task_id = ?1 AND record IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([task_id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(Some(None)) };
    let task: i64 = row.get(0)?;
    let entries = log_end(connection, task)?;
    if entries > entries_max {
        return Ok(None);
    }
    Ok(Some(Some(TaskSnapshot {
        record: decode(row, 2, || format!("the record of task {task_id}"))?,
        status_seq: to_u64(row.get(1)?),
        last_seq: entries.saturating_sub(1),
        history: history(connection, task, task_id, fields.history)?,
        artifacts: if fields.artifacts { artifacts(connection, task, task_id)? } else { Vec::new() },
    })))
}

/// The newest entries, oldest first.
fn history(
    connection: &Connection,
    task: i64,
    task_id: &TaskId,
    newest: Option<usize>,
) -> Result<Vec<HistoryEntry>, ReadError> {
    if newest == Some(0) {
        return Ok(Vec::new());
    }
    let limit = newest.map_or(-1, |newest| i64::try_from(newest).unwrap_or(i64::MAX));
    let sql = "SELECT message_id, address, bytes, status_seq FROM history
               WHERE task = ?1 ORDER BY position DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![task, limit])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(history_entry(connection, task, task_id, row)?);
    }
    entries.reverse();
    Ok(entries)
}

fn history_entry(
    connection: &Connection,
    task: i64,
    task_id: &TaskId,
    row: &Row<'_>,
) -> Result<HistoryEntry, ReadError> {
    let broken = || ReadError::Corrupt(format!("the history of task {task_id}"));
    match row.get::<_, Option<i64>>(3)? {
        Some(seq) => {
            let status = status(connection, task, seq, task_id)?.ok_or_else(broken)?;
            Ok(HistoryEntry::Status { seq: to_u64(seq), status })
        }
        None => {
            let (message_id, address): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            message_entry(&message_id, &address, row.get(2)?).ok_or_else(broken)
        }
    }
}

fn status(
    connection: &Connection,
    task: i64,
    seq: i64,
    task_id: &TaskId,
) -> Result<Option<StatusChange>, ReadError> {
    let event = connection
        .prepare_cached("SELECT event FROM log WHERE task = ?1 AND seq = ?2")?
        .query_row([task, seq], |row| {
            Ok(decode(row, 0, || format!("entry {seq} of the log of task {task_id}")))
        })
        .optional()?
        .transpose()?;
    Ok(match event {
        Some(TaskEvent::StatusChanged(status)) => Some(status),
        Some(TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_)) | None => None,
    })
}

fn artifacts(connection: &Connection, task: i64, task_id: &TaskId) -> Result<Vec<Artifact>, ReadError> {
    let sql = "SELECT event, seq FROM log WHERE task = ?1 AND kind = ?2 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([task, KIND_ARTIFACT])?;
    let mut artifacts = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(1)?;
        match decode(row, 0, || format!("entry {seq} of the log of task {task_id}"))? {
            TaskEvent::ArtifactChanged(change) => Artifact::fold(&mut artifacts, change),
            TaskEvent::TaskCreated | TaskEvent::StatusChanged(_) => {
                return Err(ReadError::Corrupt(format!("entry {seq} of the log of task {task_id}")));
            }
        }
    }
    Ok(artifacts)
}

#[cfg(test)]
mod tests {
    use harness_model::{Lifecycle, TaskExtension, TaskRecord, TaskState, Timestamp};

    use super::*;

    #[test]
    fn a_long_task_is_not_read_in_passing_unless_little_is_asked_for() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrations::migrate(&mut connection, "memory".as_ref()).unwrap();
        let record = TaskRecord {
            task_id: "t".into(),
            context_id: "c".into(),
            lifecycle: Lifecycle::Conversation,
            status: StatusChange::to(TaskState::Working),
            status_at: Timestamp::from_millis(0),
            created_at: Timestamp::from_millis(0),
            extension: TaskExtension::default(),
            usage: Default::default(),
        };
        let record = serde_json::to_string(&record).unwrap();
        let insert = "INSERT INTO tasks (id, task_id, status_seq, record) VALUES (1, 't', 0, ?1)";
        connection.execute(insert, [record]).unwrap();
        let append = |seq: u64| {
            let sql = "INSERT INTO log (task, seq, at, kind, event) VALUES (1, ?1, 0, 1, '{}')";
            connection.execute(sql, [seq.cast_signed()]).unwrap();
        };
        (0..SHORT_LOG).for_each(append);
        let look = |fields| small_task(&connection, &"t".into(), fields).unwrap();
        assert_eq!(
            look(TaskFields { history: Some(1), artifacts: true }).unwrap().unwrap().last_seq,
            SHORT_LOG - 1
        );
        append(SHORT_LOG);
        assert!(look(TaskFields::ALL).is_none());
        assert_eq!(look(TaskFields::BARE).unwrap().unwrap().last_seq, SHORT_LOG);
        assert_eq!(task(&connection, &"t".into(), TaskFields::ALL).unwrap().unwrap().last_seq, SHORT_LOG);
        assert_eq!(small_task(&connection, &"other".into(), TaskFields::ALL).unwrap(), Some(None));
    }
}
