//! Blocks, deliveries, timers and records.

use bytes::Bytes;
use harness_model::{TaskId, Timestamp, WorkflowId, limits};
use harness_ports::{Record, RecordKind, StoredTimer};
use rusqlite::{Connection, OptionalExtension, params};

use super::decode;
use crate::{
    encode::{Address, to_u64},
    readers::ReadError,
};

/// What a look at a block found.
#[derive(Debug)]
pub(crate) enum FoundBlock {
    /// The block is small; here it is.
    Small(Bytes),
    /// The block is too large to be read in passing.
    Large,
    /// There is none.
    Missing,
}

/// A block, if it is small.
pub(crate) fn block(connection: &Connection, address: &Address) -> Result<FoundBlock, ReadError> {
    let sql = "SELECT iif(length(bytes) <= ?2, bytes, NULL) FROM blocks WHERE address = ?1";
    let limit = i64::try_from(limits::CACHED_BLOCK_BYTES_MAX).unwrap_or(i64::MAX);
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![address, limit], |row| row.get::<_, Option<Vec<u8>>>(0))
        .optional()?;
    Ok(match found {
        Some(Some(bytes)) => FoundBlock::Small(Bytes::from(bytes)),
        Some(None) => FoundBlock::Large,
        None => FoundBlock::Missing,
    })
}

/// A block, however large.
pub(crate) fn block_of_any_size(
    connection: &Connection,
    address: &Address,
) -> Result<Option<Bytes>, ReadError> {
    Ok(connection
        .prepare_cached("SELECT bytes FROM blocks WHERE address = ?1")?
        .query_row([address], |row| row.get::<_, Vec<u8>>(0))
        .optional()?
        .map(Bytes::from))
}

/// The cursor of an accepted signal.
pub(crate) fn delivery(
    connection: &Connection,
    workflow_id: &WorkflowId,
    dedupe_key: &str,
) -> Result<Option<Option<u64>>, ReadError> {
    let sql = "SELECT cursor FROM deliveries
               WHERE workflow = (SELECT id FROM workflows WHERE workflow_id = ?1) AND dedupe_key = ?2";
    Ok(connection
        .prepare_cached(sql)?
        .query_row(params![workflow_id.as_str(), dedupe_key], |row| row.get::<_, Option<i64>>(0))
        .optional()?
        .map(|cursor| cursor.map(to_u64)))
}

/// The timers that are due first.
pub(crate) fn next_timers(connection: &Connection, limit: i64) -> Result<Vec<StoredTimer>, ReadError> {
    let sql =
        "SELECT workflow_id, timer_id, due_at FROM timers ORDER BY due_at, workflow_id, timer_id LIMIT ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_map([limit], stored_timer)?.collect::<rusqlite::Result<_>>()?)
}

/// The timers of one workflow, the one that is due first first.
pub(crate) fn timers(connection: &Connection, id: &WorkflowId) -> Result<Vec<StoredTimer>, ReadError> {
    let sql =
        "SELECT workflow_id, timer_id, due_at FROM timers WHERE workflow_id = ?1 ORDER BY due_at, timer_id";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_map([id.as_str()], stored_timer)?.collect::<rusqlite::Result<_>>()?)
}

fn stored_timer(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredTimer> {
    Ok(StoredTimer {
        workflow_id: row.get::<_, String>(0)?.into(),
        timer_id: row.get::<_, String>(1)?.into(),
        due_at: Timestamp::from_millis(row.get(2)?),
    })
}

/// Records of a kind and task, oldest first.
pub(crate) fn records(
    connection: &Connection,
    kind: RecordKind,
    task_id: &TaskId,
    limit: i64,
) -> Result<Vec<Record>, ReadError> {
    let sql = "SELECT record_id, value FROM records WHERE kind = ?1 AND task_id = ?2 ORDER BY id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![kind.name(), task_id.as_str(), limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let value = decode(row, 1, || format!("record {id:?} of kind {}", kind.name()))?;
        records.push(Record { kind, id, task_id: task_id.clone(), value });
    }
    Ok(records)
}

/// Records of a kind in order of their ids.
pub(crate) fn records_page(
    connection: &Connection,
    kind: RecordKind,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<Record>, ReadError> {
    // Every id is greater than the empty text, which is no id.
    let sql = "SELECT record_id, value, task_id FROM records WHERE kind = ?1 AND record_id > ?2
               ORDER BY record_id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![kind.name(), after.unwrap_or_default(), limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let value = decode(row, 1, || format!("record {id:?} of kind {}", kind.name()))?;
        records.push(Record { kind, id, task_id: TaskId::new(row.get::<_, String>(2)?), value });
    }
    Ok(records)
}
