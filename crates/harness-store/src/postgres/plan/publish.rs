//! Publications: numbers their events, extends the history, replaces the record, moves the task in the index.

use std::sync::Arc;

use harness_model::{LogEntry, TaskEvent, Timestamp};

use super::{HistoryRow, Planning, Refused, TaskChange};
use crate::{
    encode::{EncodedHistory, EncodedPublish, event_kind, is_terminal_number, to_u64},
    postgres::found::TaskRow,
};

impl<'a> Planning<'a> {
    pub(super) fn publish(&mut self, publish: &'a EncodedPublish) -> Result<(), Refused> {
        let id = publish.task_id.as_str();
        let task = self.found.tasks.get(id);
        let task = task.ok_or_else(|| Refused::Corrupt(format!("task {id} has no row")))?;
        let now = self.plan.tasks.get(id);
        let state = match now.and_then(|change| change.record) {
            Some(record) => Some(record.state),
            None => task.indexed.as_ref().map(|indexed| indexed.state),
        };
        if state.is_some_and(is_terminal_number) && publish.record.is_none() {
            return Ok(());
        }
        if !self.found.keys.insert((task.row, publish.key.clone())) {
            return Ok(());
        }
        self.plan.keys.push((task.row, &publish.key));
        let change = self.plan.tasks.entry(id).or_insert_with(|| TaskChange::of(task));
        let first_seq = change.next_seq;
        for event in &publish.events {
            let seq = change.next_seq;
            change.next_seq += 1;
            if !matches!(event.event, TaskEvent::ArtifactChanged(_)) {
                change.status_seq = seq;
            }
            self.plan.log.push((change.row, seq, event_kind(&event.event), &event.json));
            let entry = LogEntry {
                seq: to_u64(seq),
                at: Timestamp::from_millis(self.at),
                event: event.event.clone(),
            };
            self.plan.entries.push((publish.task_id.clone(), Arc::new(entry)));
        }
        for append in &publish.history {
            self.plan.history.push(history_row(change, first_seq, append));
            change.next_position += 1;
        }
        if let Some(record) = &publish.record {
            change.record = Some(record);
        }
        Ok(())
    }

    /// Where each task with a new record belongs now.
    pub(super) fn settle_index(&mut self) -> Result<(), Refused> {
        for (id, change) in &mut self.plan.tasks {
            let Some(record) = change.record else { continue };
            let before = self.found.tasks.get(*id).and_then(|task| task.indexed.as_ref());
            let Some(before) = before else {
                change.entered = record.scopes.iter().map(String::as_str).collect();
                continue;
            };
            let moved = (before.state, before.status_at) != (record.state, record.status_at);
            if !moved && before.scopes == record.scopes_json {
                continue;
            }
            let known: Vec<String> = serde_json::from_str(&before.scopes)
                .map_err(|e| Refused::Corrupt(format!("the scopes of task {id}: {e}")))?;
            let entered = record.scopes.iter().filter(|scope| moved || !known.contains(scope));
            change.entered = entered.map(String::as_str).collect();
            change.left = known.into_iter().filter(|scope| !record.scopes.contains(scope)).collect();
        }
        Ok(())
    }
}

impl TaskChange<'_> {
    fn of(task: &TaskRow) -> Self {
        Self {
            row: task.row,
            next_seq: task.next_seq,
            next_position: task.next_position,
            status_seq: task.status_seq,
            record: None,
            left: Vec::new(),
            entered: Vec::new(),
        }
    }
}

fn history_row<'a>(change: &TaskChange<'_>, first_seq: i64, append: &'a EncodedHistory) -> HistoryRow<'a> {
    let row = HistoryRow {
        task: change.row,
        position: change.next_position,
        message_id: None,
        address: None,
        bytes: None,
        status_seq: None,
    };
    match append {
        EncodedHistory::Message { message_id, address, bytes } => {
            HistoryRow { message_id: Some(message_id), address: Some(address), bytes: Some(*bytes), ..row }
        }
        EncodedHistory::Status { event } => {
            let offset = i64::try_from(*event).unwrap_or(i64::MAX);
            HistoryRow { status_seq: Some(first_seq.saturating_add(offset)), ..row }
        }
    }
}
