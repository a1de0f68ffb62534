//! Pages of tasks, newest status first.
//!
//! The index holds, for every scope and state, the tasks in the order of a listing. A page is the head of the merged
//! heads of the states that are asked for, so that its cost depends on its size and not on the number of tasks.

use harness_model::{TaskId, TaskState, Timestamp};
use harness_ports::{StoreError, TaskCursor, TaskPage, TaskQuery};

use super::{
    column,
    task::{snapshot, task_columns, task_parts, wanted},
};
use crate::{
    encode::{EVERYTHING, context_scope, participant_scope, state_number, to_u64},
    postgres::connect::Server,
};

/// Matching tasks are counted up to here.
const TOTAL_MAX: i64 = 10_000;

/// The scope that is walked, and another one that each task must be in as well.
struct Scopes {
    walked: String,
    also: Option<String>,
}

/// One page, over one state of the database. A page has one row at least: the one that says how many tasks match.
const PAGE: &str = concat!(
    "SELECT c.total, p.* FROM (
         SELECT count(*) AS total FROM (
             SELECT 1 FROM task_index i
             WHERE i.scope = $3 AND i.state = ANY($5) AND i.status_at >= $6
               AND ($4::text IS NULL OR EXISTS (
                   SELECT 1 FROM task_index o WHERE o.task = i.task AND o.scope = $4))
             LIMIT $10) AS matching) AS c
     LEFT JOIN (
         SELECT heads.status_at, heads.task_id, ",
    task_columns!(),
    " FROM (
             SELECT head.* FROM unnest($5::bigint[]) AS wanted (state) CROSS JOIN LATERAL (
                 SELECT i.status_at, i.task_id, i.task FROM task_index i
                 WHERE i.scope = $3 AND i.state = wanted.state AND i.status_at >= $6
                   AND (i.status_at, i.task_id) < ($7, $8)
                   AND ($4::text IS NULL OR EXISTS (
                       SELECT 1 FROM task_index o WHERE o.task = i.task AND o.scope = $4))
                 ORDER BY i.status_at DESC, i.task_id DESC LIMIT $9) AS head
             ORDER BY head.status_at DESC, head.task_id DESC LIMIT $9) AS heads
         JOIN tasks t ON t.id = heads.task ",
    task_parts!(),
    ") AS p ON true ORDER BY p.status_at DESC, p.task_id DESC"
);

/// One page.
pub(in crate::postgres) async fn list_tasks(
    server: &Server,
    query: &TaskQuery,
) -> Result<TaskPage, StoreError> {
    let scopes = scopes(server, query).await?;
    let states = match &query.state {
        Some(state) => std::slice::from_ref(state),
        None => &TaskState::ALL[..],
    };
    let states: Vec<i64> = states.iter().copied().map(state_number).collect();
    let (history, artifacts) = wanted(query.fields);
    let (before_at, before_id) = match &query.after {
        Some(cursor) => (cursor.status_at.as_millis(), cursor.task_id.as_str()),
        None => (i64::MAX, ""),
    };
    let since = query.status_since.map_or(i64::MIN, Timestamp::as_millis);
    // One more than the page holds, to know whether there is another page.
    let limit = i64::try_from(query.limit).map_or(i64::MAX, |limit| limit.saturating_add(1));
    let page = || {
        sqlx::query(PAGE)
            .bind(history)
            .bind(artifacts)
            .bind(&scopes.walked)
            .bind(&scopes.also)
            .bind(&states)
            .bind(since)
            .bind(before_at)
            .bind(before_id)
            .bind(limit)
            .bind(TOTAL_MAX)
    };
    let rows = server.rows("listing tasks", page).await?;
    let total = rows.first().map(|row| column(row, "total")).transpose()?.map_or(0, to_u64);
    let (mut tasks, mut last) = (Vec::new(), None);
    let mut more = false;
    for row in &rows {
        let Some(id) = column::<Option<String>>(row, "task_id")? else { break };
        if tasks.len() == query.limit {
            more = true;
            break;
        }
        let task_id = TaskId::new(id);
        tasks.push(snapshot(row, &task_id)?);
        last = Some(TaskCursor { status_at: Timestamp::from_millis(column(row, "status_at")?), task_id });
    }
    Ok(TaskPage { tasks, next: last.filter(|_| more), total })
}

/// Walks the smaller scope when a task must be in two of them.
async fn scopes(server: &Server, query: &TaskQuery) -> Result<Scopes, StoreError> {
    let context = query.context_id.as_ref().map(|id| context_scope(id.as_str()));
    let participant = query.visible_to.as_ref().map(|id| participant_scope(id.as_str()));
    Ok(match (context, participant) {
        (Some(context), Some(participant)) => {
            if size(server, &context).await? <= size(server, &participant).await? {
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
async fn size(server: &Server, scope: &str) -> Result<i64, StoreError> {
    let sql = "SELECT count(*) AS size FROM (SELECT 1 FROM task_index WHERE scope = $1 LIMIT $2) AS counted";
    let rows = server.rows("listing tasks", || sqlx::query(sql).bind(scope).bind(TOTAL_MAX)).await?;
    rows.first().map_or(Ok(0), |row| column(row, "size"))
}
