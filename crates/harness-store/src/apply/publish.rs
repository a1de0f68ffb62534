//! Applies a publication: numbers its events, extends the history, replaces the record.

use std::sync::Arc;

use harness_model::{LogEntry, TaskEvent, TaskId, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::{BatchApply, Refused, task_index};
use crate::encode::{EncodedHistory, EncodedPublish, EncodedRecord, event_kind, is_terminal_number, to_u64};

/// The stored row of a task.
pub(super) struct TaskRow {
    pub(super) id: i64,
    pub(super) indexed: Option<task_index::Indexed>,
}

impl BatchApply<'_> {
    pub(super) fn publish(&mut self, publish: &EncodedPublish) -> Result<(), Refused> {
        let task = self.task_row(&publish.task_id)?;
        let ended = task.indexed.as_ref().is_some_and(|indexed| is_terminal_number(indexed.state));
        if ended && publish.record.is_none() {
            return Ok(());
        }
        let fresh = self.change(
            "INSERT INTO publish_keys (task, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![task.id, publish.key],
        )?;
        if fresh == 0 {
            return Ok(());
        }
        let first_seq = self.append_log(task.id, publish)?;
        if !publish.history.is_empty() {
            self.append_history(task.id, first_seq, &publish.history)?;
        }
        let status_seq = publish
            .events
            .iter()
            .rposition(|event| !matches!(event.event, TaskEvent::ArtifactChanged(_)))
            .map(|index| first_seq + offset(index));
        match &publish.record {
            Some(record) => self.replace_record(&task, publish, record, status_seq),
            None if status_seq.is_some() => {
                self.execute("UPDATE tasks SET status_seq = ?2 WHERE id = ?1", params![task.id, status_seq])
            }
            None => Ok(()),
        }
    }

    /// The row of a task, which comes to be with the first mention of it.
    pub(super) fn task_row(&self, task_id: &TaskId) -> Result<TaskRow, Refused> {
        if let Some(row) = self.find_task(task_id)? {
            return Ok(row);
        }
        self.execute("INSERT INTO tasks (task_id) VALUES (?1)", [task_id.as_str()])?;
        Ok(TaskRow { id: self.connection.last_insert_rowid(), indexed: None })
    }

    pub(super) fn find_task(&self, task_id: &TaskId) -> Result<Option<TaskRow>, Refused> {
        Ok(self
            .connection
            .prepare_cached("SELECT id, state, status_at, scopes FROM tasks WHERE task_id = ?1")?
            .query_row([task_id.as_str()], |row| {
                let indexed = match row.get::<_, Option<i64>>(1)? {
                    Some(state) => {
                        Some(task_index::Indexed { state, status_at: row.get(2)?, scopes: row.get(3)? })
                    }
                    None => None,
                };
                Ok(TaskRow { id: row.get(0)?, indexed })
            })
            .optional()?)
    }

    /// Appends the events and returns the number of the first one.
    fn append_log(&mut self, task: i64, publish: &EncodedPublish) -> Result<i64, Refused> {
        let first_seq: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(max(seq) + 1, 0) FROM log WHERE task = ?1")?
            .query_row([task], |row| row.get(0))?;
        for (index, event) in publish.events.iter().enumerate() {
            let seq = first_seq + offset(index);
            self.execute(
                "INSERT INTO log (task, seq, at, kind, event) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![task, seq, self.at, event_kind(&event.event), event.json],
            )?;
            let entry = LogEntry {
                seq: to_u64(seq),
                at: Timestamp::from_millis(self.at),
                event: event.event.clone(),
            };
            self.done.committed.entries.push((publish.task_id.clone(), Arc::new(entry)));
        }
        Ok(first_seq)
    }

    fn append_history(&self, task: i64, first_seq: i64, history: &[EncodedHistory]) -> Result<(), Refused> {
        let next: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(max(position) + 1, 0) FROM history WHERE task = ?1")?
            .query_row([task], |row| row.get(0))?;
        for (index, append) in history.iter().enumerate() {
            let position = next + offset(index);
            match append {
                EncodedHistory::Message { message_id, address, bytes } => self.execute(
                    "INSERT INTO history (task, position, message_id, address, bytes)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![task, position, message_id, address, bytes],
                )?,
                EncodedHistory::Status { event } => self.execute(
                    "INSERT INTO history (task, position, status_seq) VALUES (?1, ?2, ?3)",
                    params![task, position, first_seq + offset(*event)],
                )?,
            }
        }
        Ok(())
    }

    fn replace_record(
        &self,
        task: &TaskRow,
        publish: &EncodedPublish,
        record: &EncodedRecord,
        status_seq: Option<i64>,
    ) -> Result<(), Refused> {
        task_index::update(self.connection, &publish.task_id, task.indexed.as_ref(), record)?;
        self.execute(
            "UPDATE tasks SET record = ?2, state = ?3, status_at = ?4, scopes = ?5,
                 status_seq = coalesce(?6, status_seq) WHERE id = ?1",
            params![task.id, record.json, record.state, record.status_at, record.scopes_json, status_seq],
        )
    }
}

pub(super) fn offset(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}
