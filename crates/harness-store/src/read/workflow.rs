//! Workflows with what they need to go on.

use bytes::Bytes;
use harness_model::WorkflowId;
use harness_ports::{ActivityTask, HistoryEvent, StoredWorkflow};
use rusqlite::{Connection, OptionalExtension, params};

use super::decode;
use crate::{
    encode::to_u64,
    readers::{ReadError, snapshot},
};

/// Whether there is such a workflow.
pub(crate) fn workflow_exists(connection: &Connection, workflow_id: &WorkflowId) -> Result<bool, ReadError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM workflows WHERE workflow_id = ?1)";
    Ok(connection.prepare_cached(sql)?.query_row([workflow_id.as_str()], |row| row.get(0))?)
}

/// A workflow, over one state of the database.
pub(crate) fn workflow(
    connection: &Connection,
    workflow_id: &WorkflowId,
) -> Result<Option<StoredWorkflow>, ReadError> {
    snapshot(connection, |connection| {
        let found = connection
            .prepare_cached("SELECT id, workflow_type, closed FROM workflows WHERE workflow_id = ?1")?
            .query_row([workflow_id.as_str()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, bool>(2)?))
            })
            .optional()?;
        let Some((row, workflow_type, closed)) = found else { return Ok(None) };
        let snapshot = state(connection, row)?;
        let included = snapshot.as_ref().map_or(0, |(seq, _)| *seq);
        let tail = journal(connection, row, included, workflow_id)?;
        let next_seq = connection
            .prepare_cached("SELECT coalesce(max(seq) + 1, 0) FROM journal WHERE workflow = ?1")?
            .query_row([row], |row| row.get(0))
            .map(to_u64)?;
        let activities = activities(connection, workflow_id)?;
        let snapshot = snapshot.map(|(seq, state)| (to_u64(seq), state));
        Ok(Some(StoredWorkflow { workflow_type, closed, snapshot, tail, next_seq, activities }))
    })
}

fn state(connection: &Connection, workflow: i64) -> Result<Option<(i64, Bytes)>, ReadError> {
    Ok(connection
        .prepare_cached("SELECT seq, state FROM snapshots WHERE workflow = ?1")?
        .query_row([workflow], |row| Ok((row.get(0)?, Bytes::from(row.get::<_, Vec<u8>>(1)?))))
        .optional()?)
}

fn journal(
    connection: &Connection,
    workflow: i64,
    from: i64,
    workflow_id: &WorkflowId,
) -> Result<Vec<(u64, HistoryEvent)>, ReadError> {
    let sql = "SELECT seq, event FROM journal WHERE workflow = ?1 AND seq >= ?2 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![workflow, from])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = to_u64(row.get(0)?);
        events.push((seq, decode(row, 1, || format!("event {seq} of workflow {workflow_id}"))?));
    }
    Ok(events)
}

fn activities(connection: &Connection, workflow_id: &WorkflowId) -> Result<Vec<ActivityTask>, ReadError> {
    let sql = "SELECT task FROM activities WHERE workflow_id = ?1 ORDER BY activity_id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([workflow_id.as_str()])?;
    let mut activities = Vec::new();
    while let Some(row) = rows.next()? {
        activities.push(decode(row, 0, || format!("an activity of workflow {workflow_id}"))?);
    }
    Ok(activities)
}

/// Workflows that have announced activities, in order of id.
pub(crate) fn workflows_with_activities(
    connection: &Connection,
    after: Option<&WorkflowId>,
    limit: i64,
) -> Result<Vec<WorkflowId>, ReadError> {
    let sql = "SELECT DISTINCT workflow_id FROM activities
               WHERE workflow_id > ?1 ORDER BY workflow_id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let after = after.map_or("", WorkflowId::as_str);
    let ids = statement.query_map(params![after, limit], |row| row.get::<_, String>(0))?;
    Ok(ids.map(|id| id.map(WorkflowId::from)).collect::<rusqlite::Result<_>>()?)
}
