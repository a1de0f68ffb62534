//! Pages of tasks, newest status first.
//!
//! The index holds, for every scope and state, the tasks in the order of a listing. A page is the head of the merged
//! heads of the states that are asked for, so that its cost depends on its size and not on the number of tasks.

use harness_model::{TaskId, TaskState, Timestamp};
use harness_ports::{TaskCursor, TaskPage, TaskQuery};
use rusqlite::{Connection, named_params};

use super::task::task_in;
use crate::{
    encode::{EVERYTHING, context_scope, participant_scope, state_number},
    readers::{ReadError, snapshot},
};

/// Matching tasks are counted up to here.
const TOTAL_MAX: u64 = 10_000;

/// The scope that is walked, and another one that each task must be in as well.
struct Scopes {
    walked: String,
    also: Option<String>,
}

/// One page, over one state of the database.
pub(crate) fn list_tasks(connection: &Connection, query: &TaskQuery) -> Result<TaskPage, ReadError> {
    snapshot(connection, |connection| {
        let states = match &query.state {
            Some(state) => std::slice::from_ref(state),
            None => &TaskState::ALL[..],
        };
        let scopes = scopes(connection, query)?;
        let mut found = Vec::new();
        for state in states {
            head(connection, &scopes, *state, query, &mut found)?;
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found.last().filter(|_| more).map(|(status_at, task_id)| TaskCursor {
            status_at: Timestamp::from_millis(*status_at),
            task_id: task_id.clone(),
        });
        let mut tasks = Vec::with_capacity(found.len());
        for (_, task_id) in &found {
            let task = task_in(connection, task_id, query.fields)?;
            tasks.push(task.ok_or_else(|| ReadError::Corrupt(format!("the index names task {task_id}")))?);
        }
        Ok(TaskPage { tasks, next, total: total(connection, &scopes, states, query)? })
    })
}

/// Walks the smaller scope when a task must be in two of them.
fn scopes(connection: &Connection, query: &TaskQuery) -> Result<Scopes, ReadError> {
    let context = query.context_id.as_ref().map(|id| context_scope(id.as_str()));
    let participant = query.visible_to.as_ref().map(|id| participant_scope(id.as_str()));
    Ok(match (context, participant) {
        (Some(context), Some(participant)) => {
            if size(connection, &context)? <= size(connection, &participant)? {
                Scopes { walked: context, also: Some(participant) }
            } else {
                Scopes { walked: participant, also: Some(context) }
            }
        }
        (Some(only), None) | (None, Some(only)) => Scopes { walked: only, also: None },
        (None, None) => Scopes { walked: EVERYTHING.to_owned(), also: None },
    })
}

/// Tasks of a scope, counted up to the limit.
fn size(connection: &Connection, scope: &str) -> Result<i64, ReadError> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM task_index WHERE scope = :scope LIMIT :limit)";
    let limit = i64::try_from(TOTAL_MAX).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row(named_params! {":scope": scope, ":limit": limit}, |row| row.get(0))?)
}

/// The first tasks of one state after the cursor: one more than the page holds, to know whether there is another page.
fn head(
    connection: &Connection,
    scopes: &Scopes,
    state: TaskState,
    query: &TaskQuery,
    found: &mut Vec<(i64, TaskId)>,
) -> Result<(), ReadError> {
    let sql = "SELECT status_at, task_id FROM task_index AS t
               WHERE scope = :scope AND state = :state AND status_at >= :since
                 AND (status_at, task_id) < (:before_at, :before_id)
                 AND (:also IS NULL OR EXISTS (
                     SELECT 1 FROM task_index AS a WHERE a.scope = :also AND a.state = t.state
                       AND a.status_at = t.status_at AND a.task_id = t.task_id))
               ORDER BY status_at DESC, task_id DESC LIMIT :limit";
    let (before_at, before_id) = match &query.after {
        Some(cursor) => (cursor.status_at.as_millis(), cursor.task_id.as_str()),
        None => (i64::MAX, ""),
    };
    let limit = i64::try_from(query.limit).map_or(i64::MAX, |limit| limit.saturating_add(1));
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(
        named_params! {
            ":scope": scopes.walked, ":also": scopes.also, ":state": state_number(state),
            ":since": since(query), ":before_at": before_at, ":before_id": before_id, ":limit": limit,
        },
        |row| Ok((row.get::<_, i64>(0)?, TaskId::from(row.get::<_, String>(1)?))),
    )?;
    for row in rows {
        found.push(row?);
    }
    Ok(())
}

fn total(
    connection: &Connection,
    scopes: &Scopes,
    states: &[TaskState],
    query: &TaskQuery,
) -> Result<u64, ReadError> {
    let sql = "SELECT count(*) FROM (
                   SELECT 1 FROM task_index AS t
                   WHERE scope = :scope AND state = :state AND status_at >= :since
                     AND (:also IS NULL OR EXISTS (
                         SELECT 1 FROM task_index AS a WHERE a.scope = :also AND a.state = t.state
                           AND a.status_at = t.status_at AND a.task_id = t.task_id))
                   LIMIT :limit)";
    let mut total = 0;
    for state in states {
        let limit = i64::try_from(TOTAL_MAX - total).unwrap_or(i64::MAX);
        let params = named_params! {
            ":scope": scopes.walked, ":also": scopes.also, ":state": state_number(*state),
            ":since": since(query), ":limit": limit,
        };
        let counted: i64 = connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
        total += crate::encode::to_u64(counted);
    }
    Ok(total)
}

fn since(query: &TaskQuery) -> i64 {
    query.status_since.map_or(i64::MIN, Timestamp::as_millis)
}
