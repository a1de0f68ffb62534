//! A task as it is now.

use harness_model::{Artifact, HistoryEntry, TaskEvent, TaskId, TaskSnapshot};
use harness_ports::{StoreError, TaskFields};
use sqlx::postgres::PgRow;

use super::{column, decode};
use crate::{
    encode::{message_entry, to_u64},
    error::corrupt,
    postgres::connect::Server,
};

/// Columns of a row `t` of `tasks`, given how many entries of the history ($1, null for all) and whether artifacts ($2)
/// are wanted. Only the tables in `FROM` come before it, and the condition after it. 3 is the kind of an event that
/// changes an artifact.
macro_rules! task_columns {
    () => {
        "t.record, t.status_seq, t.next_seq,
         h.message_ids, h.addresses, h.sizes, h.status_seqs, h.statuses, a.seqs, a.changes"
    };
}
macro_rules! task_parts {
    () => {
        "CROSS JOIN LATERAL (
             SELECT coalesce(array_agg(message_id ORDER BY position), '{}') AS message_ids,
                    coalesce(array_agg(address ORDER BY position), '{}') AS addresses,
                    coalesce(array_agg(bytes ORDER BY position), '{}') AS sizes,
                    coalesce(array_agg(status_seq ORDER BY position), '{}') AS status_seqs,
                    coalesce(array_agg(event ORDER BY position), '{}') AS statuses
             FROM (SELECT n.*, l.event
                   FROM (SELECT * FROM history WHERE task = t.id ORDER BY position DESC LIMIT $1) AS n
                   LEFT JOIN log l ON l.task = t.id AND l.seq = n.status_seq) AS newest) AS h
         CROSS JOIN LATERAL (
             SELECT coalesce(array_agg(seq ORDER BY seq), '{}') AS seqs,
                    coalesce(array_agg(event ORDER BY seq), '{}') AS changes
             FROM log WHERE task = t.id AND kind = 3 AND $2) AS a"
    };
}
pub(super) use {task_columns, task_parts};

/// A task. `None` until its first record was published.
pub(in crate::postgres) async fn task(
    server: &Server,
    task_id: &TaskId,
    fields: TaskFields,
) -> Result<Option<TaskSnapshot>, StoreError> {
    let sql = concat!(
        "SELECT ",
        task_columns!(),
        " FROM tasks t ",
        task_parts!(),
        " WHERE t.task_id = $3 AND t.record IS NOT NULL"
    );
    let (history, artifacts) = wanted(fields);
    let query = || sqlx::query(sql).bind(history).bind(artifacts).bind(task_id.as_str());
    let rows = server.rows("reading a task", query).await?;
    rows.first().map(|row| snapshot(row, task_id)).transpose()
}

/// The first two parameters.
pub(super) fn wanted(fields: TaskFields) -> (Option<i64>, bool) {
    let history = fields.history.map(|newest| i64::try_from(newest).unwrap_or(i64::MAX));
    (history, fields.artifacts)
}

/// A task from its columns.
pub(super) fn snapshot(row: &PgRow, task_id: &TaskId) -> Result<TaskSnapshot, StoreError> {
    Ok(TaskSnapshot {
        record: decode(column(row, "record")?, || format!("the record of task {task_id}"))?,
        status_seq: to_u64(column(row, "status_seq")?),
        last_seq: to_u64(column(row, "next_seq")?).saturating_sub(1),
        history: history(row, task_id)?,
        artifacts: artifacts(row, task_id)?,
    })
}

fn history(row: &PgRow, task_id: &TaskId) -> Result<Vec<HistoryEntry>, StoreError> {
    let message_ids: Vec<Option<String>> = column(row, "message_ids")?;
    let addresses: Vec<Option<Vec<u8>>> = column(row, "addresses")?;
    let sizes: Vec<Option<i64>> = column(row, "sizes")?;
    let status_seqs: Vec<Option<i64>> = column(row, "status_seqs")?;
    let statuses: Vec<Option<String>> = column(row, "statuses")?;
    let messages = message_ids.into_iter().zip(addresses).zip(sizes);
    let mut entries = Vec::with_capacity(status_seqs.len());
    for (message, status) in messages.zip(status_seqs.into_iter().zip(statuses)) {
        let entry = match (message, status) {
            (_, (Some(seq), Some(event))) => status_entry(seq, &event, task_id)?,
            (((Some(message_id), Some(address)), Some(bytes)), (None, _)) => {
                message_entry(&message_id, &address, bytes)
            }
            _ => None,
        };
        entries.push(entry.ok_or_else(|| corrupt(format!("the history of task {task_id}")))?);
    }
    Ok(entries)
}

fn status_entry(seq: i64, event: &str, task_id: &TaskId) -> Result<Option<HistoryEntry>, StoreError> {
    let seq = to_u64(seq);
    Ok(match decode(event, || format!("entry {seq} of the log of task {task_id}"))? {
        TaskEvent::StatusChanged(status) => Some(HistoryEntry::Status { seq, status }),
        TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => None,
    })
}

fn artifacts(row: &PgRow, task_id: &TaskId) -> Result<Vec<Artifact>, StoreError> {
    let (seqs, changes): (Vec<i64>, Vec<String>) = (column(row, "seqs")?, column(row, "changes")?);
    let mut artifacts = Vec::new();
    for (seq, change) in seqs.into_iter().zip(changes) {
        let what = || format!("entry {seq} of the log of task {task_id}");
        match decode(&change, what)? {
            TaskEvent::ArtifactChanged(change) => Artifact::fold(&mut artifacts, change),
            TaskEvent::TaskCreated | TaskEvent::StatusChanged(_) => return Err(corrupt(what())),
        }
    }
    Ok(artifacts)
}

#[cfg(test)]
mod tests {
    #[test]
    fn artifacts_are_selected_by_the_number_of_their_kind() {
        let kind = format!("kind = {} ", crate::encode::KIND_ARTIFACT);
        assert!(task_parts!().contains(&kind));
    }
}
