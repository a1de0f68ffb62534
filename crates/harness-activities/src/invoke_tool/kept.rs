//! Results that are kept behind a handle because the model does not see them whole.

use harness_model::{BlockId, BlockRef, CallId, TaskId};
use harness_ports::{ActivityFailure, Record, RecordKind, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure;

/// Version of the shape of the record.
const FORMAT: u32 = 1;
/// Hex digits of a handle.
const HANDLE_DIGITS: usize = 10;
/// Kept results of one task among which a handle is looked for.
const RECORDS_MAX: usize = 10_000;

/// A kept text. The value of a record of kind `SpilledResult`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptResult {
    format: u32,
    /// What the model reads it by.
    pub(super) handle: String,
    /// Registry name of the tool it came from.
    pub(super) tool: String,
    /// The call it came from.
    pub(super) call_id: CallId,
    /// The turn of that call.
    pub(super) turn: u32,
    /// The text, scrubbed, UTF-8.
    pub(super) text: BlockRef,
    /// Its lines.
    pub(super) lines: u64,
}

/// The handle of the `number`th kept text of a call: the same in every run of it.
pub(super) fn handle(idempotency_key: &str, number: usize) -> String {
    let digest = BlockId::of(format!("{idempotency_key}\n{number}").as_bytes());
    format!("r{}", digest.as_str().get(..HANDLE_DIGITS).unwrap_or_default())
}

impl KeptResult {
    pub(super) fn new(
        handle: String,
        tool: &str,
        call_id: &CallId,
        turn: u32,
        text: BlockRef,
        lines: u64,
    ) -> Self {
        Self { format: FORMAT, handle, tool: tool.to_owned(), call_id: call_id.clone(), turn, text, lines }
    }

    pub(super) fn record(&self, task_id: &TaskId) -> Result<Record, ActivityFailure> {
        let value = serde_json::to_value(self)
            .map_err(|error| failure::state_invalid(&format!("a kept result is not JSON: {error}")))?;
        let id = record_id(task_id, &self.handle);
        Ok(Record { kind: RecordKind::SpilledResult, id, task_id: task_id.clone(), value })
    }

    /// The kept text of this task with this handle.
    pub(super) async fn find(
        store: &dyn Store,
        task_id: &TaskId,
        handle: &str,
    ) -> Result<Option<Self>, ActivityFailure> {
        let records = store.records(RecordKind::SpilledResult, task_id, RECORDS_MAX).await;
        let records = records.map_err(|error| failure::of_store(&error))?;
        let id = record_id(task_id, handle);
        let Some(record) = records.into_iter().find(|record| record.id == id) else { return Ok(None) };
        read(record.value).map(Some)
    }
}

fn read(value: Value) -> Result<KeptResult, ActivityFailure> {
    match serde_json::from_value::<KeptResult>(value) {
        Ok(kept) if kept.format == FORMAT => Ok(kept),
        Ok(kept) => Err(failure::state_invalid(&format!("kept result of unknown format {}", kept.format))),
        Err(error) => Err(failure::state_invalid(&format!("a kept result is not readable: {error}"))),
    }
}

fn record_id(task_id: &TaskId, handle: &str) -> String {
    format!("{task_id}/{handle}")
}
