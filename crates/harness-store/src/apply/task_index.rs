//! Keeps the rows that listings walk in step with a task's record.

use harness_model::TaskId;
use rusqlite::{Connection, params, types::Type};

use super::Refused;
use crate::encode::EncodedRecord;

/// What the index says about a task now.
pub(super) struct Indexed {
    pub(super) state: i64,
    pub(super) status_at: i64,
    /// The scopes, as `EncodedRecord::scopes_json`.
    pub(super) scopes: String,
}

/// Moves the task to where its record says it belongs.
pub(super) fn update(
    connection: &Connection,
    task_id: &TaskId,
    before: Option<&Indexed>,
    record: &EncodedRecord,
) -> Result<(), Refused> {
    let Some(before) = before else {
        for scope in &record.scopes {
            insert(connection, scope, task_id, record)?;
        }
        return Ok(());
    };
    let moved = (before.state, before.status_at) != (record.state, record.status_at);
    if !moved && before.scopes == record.scopes_json {
        return Ok(());
    }
    let known = scopes(before)?;
    for scope in &record.scopes {
        if !known.contains(scope) {
            insert(connection, scope, task_id, record)?;
        } else if moved {
            move_row(connection, scope, task_id, before, record)?;
        }
    }
    for scope in known.iter().filter(|scope| !record.scopes.contains(scope)) {
        remove(connection, scope, task_id, before)?;
    }
    Ok(())
}

/// Takes a task that is deleted out of every scope.
pub(super) fn forget(connection: &Connection, task_id: &TaskId, indexed: &Indexed) -> Result<(), Refused> {
    let scopes = scopes(indexed)?;
    scopes.iter().try_for_each(|scope| remove(connection, scope, task_id, indexed))
}

fn scopes(indexed: &Indexed) -> rusqlite::Result<Vec<String>> {
    serde_json::from_str(&indexed.scopes)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(e)))
}

fn insert(
    connection: &Connection,
    scope: &str,
    task_id: &TaskId,
    record: &EncodedRecord,
) -> Result<(), Refused> {
    connection
        .prepare_cached(
            "INSERT INTO task_index (scope, state, status_at, task_id) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![scope, record.state, record.status_at, task_id.as_str()])?;
    Ok(())
}

fn move_row(
    connection: &Connection,
    scope: &str,
    task_id: &TaskId,
    before: &Indexed,
    record: &EncodedRecord,
) -> Result<(), Refused> {
    connection
        .prepare_cached(
            "UPDATE OR REPLACE task_index SET state = ?5, status_at = ?6
             WHERE scope = ?1 AND state = ?2 AND status_at = ?3 AND task_id = ?4",
        )?
        .execute(params![
            scope,
            before.state,
            before.status_at,
            task_id.as_str(),
            record.state,
            record.status_at
        ])?;
    Ok(())
}

fn remove(connection: &Connection, scope: &str, task_id: &TaskId, before: &Indexed) -> Result<(), Refused> {
    connection
        .prepare_cached(
            "DELETE FROM task_index WHERE scope = ?1 AND state = ?2 AND status_at = ?3 AND task_id = ?4",
        )?
        .execute(params![scope, before.state, before.status_at, task_id.as_str()])?;
    Ok(())
}
