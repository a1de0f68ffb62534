//! Batches as the writer wants them: everything that costs time is done by the caller, on its own thread.

use bytes::Bytes;
use harness_model::{
    ActivityId, BlockRef, HistoryEntry, TaskEvent, TaskId, TaskRecord, TaskState, TimerId, WorkflowId,
};
use harness_ports::{DeleteWhen, HistoryAppend, Publish, RecordKind, StoreError, Write, WriteBatch};
use serde::Serialize;

use crate::error;

/// SHA-256 of a block; the binary form of a `BlockId`.
pub(crate) type Address = [u8; 32];

/// A batch, ready to be bound to statements.
#[derive(Debug)]
pub(crate) struct EncodedBatch {
    pub(crate) at: i64,
    pub(crate) ops: Vec<Op>,
}

/// One change.
#[derive(Debug)]
pub(crate) enum Op {
    PutBlock { address: Address, bytes: Bytes, task_id: TaskId },
    RequireTask { task_id: TaskId },
    DeleteTask { task_id: TaskId, when: DeleteWhen },
    CreateWorkflow { workflow_id: WorkflowId, workflow_type: String },
    AppendJournal { workflow_id: WorkflowId, seq: i64, event: String },
    SaveSnapshot { workflow_id: WorkflowId, seq: i64, state: Bytes },
    AnnounceActivity { workflow_id: WorkflowId, activity_id: ActivityId, task: String },
    RemoveActivity { workflow_id: WorkflowId, activity_id: ActivityId },
    StartTimer { workflow_id: WorkflowId, timer_id: TimerId, due_at: i64 },
    RemoveTimer { workflow_id: WorkflowId, timer_id: TimerId },
    RecordDelivery { workflow_id: WorkflowId, dedupe_key: String, cursor: Option<i64> },
    Publish(Box<EncodedPublish>),
    PutRecord { kind: &'static str, id: String, task_id: TaskId, value: String },
    ReplaceRecord { kind: &'static str, id: String, task_id: TaskId, before: String, value: String },
    DeleteRecord { kind: &'static str, id: String },
    DeleteOldRecords { kind: RecordKind, before: i64, limit: i64 },
    CloseWorkflow { workflow_id: WorkflowId },
}

/// An addition to a task's log, history and record.
#[derive(Debug)]
pub(crate) struct EncodedPublish {
    pub(crate) task_id: TaskId,
    pub(crate) key: String,
    pub(crate) events: Vec<EncodedEvent>,
    pub(crate) record: Option<EncodedRecord>,
    pub(crate) history: Vec<EncodedHistory>,
}

/// An event with its stored form.
#[derive(Debug)]
pub(crate) struct EncodedEvent {
    pub(crate) event: TaskEvent,
    pub(crate) json: String,
}

/// A record with what the index needs of it.
#[derive(Debug)]
pub(crate) struct EncodedRecord {
    pub(crate) state: i64,
    pub(crate) status_at: i64,
    /// Sorted, without duplicates.
    pub(crate) scopes: Vec<String>,
    /// The scopes as they are kept beside the record, to find the rows of the index again.
    pub(crate) scopes_json: String,
    pub(crate) json: String,
}

/// An addition to `Task.history`.
#[derive(Debug)]
pub(crate) enum EncodedHistory {
    Message { message_id: String, address: Address, bytes: i64 },
    Status { event: usize },
}

/// Scope of every task.
pub(crate) const EVERYTHING: &str = "*";

/// Scope of the tasks of one context.
pub(crate) fn context_scope(context_id: &str) -> String {
    format!("c/{context_id}")
}

/// Scope of the tasks one participant takes part in.
pub(crate) fn participant_scope(participant_id: &str) -> String {
    format!("p/{participant_id}")
}

/// Number of a state in the store. Never changes, never reused.
pub(crate) fn state_number(state: TaskState) -> i64 {
    match state {
        TaskState::Submitted => 1,
        TaskState::Working => 2,
        TaskState::Completed => 3,
        TaskState::Failed => 4,
        TaskState::Canceled => 5,
        TaskState::InputRequired => 6,
        TaskState::Rejected => 7,
        TaskState::AuthRequired => 8,
    }
}

/// Whether the state with this number is the end of a task.
pub(crate) fn is_terminal_number(number: i64) -> bool {
    TaskState::ALL.into_iter().any(|state| state.is_terminal() && state_number(state) == number)
}

/// Number of an event kind in the store: what reads select by. Never changes, never reused.
pub(crate) fn event_kind(event: &TaskEvent) -> i64 {
    match event {
        TaskEvent::TaskCreated => 1,
        TaskEvent::StatusChanged(_) => 2,
        TaskEvent::ArtifactChanged(_) => KIND_ARTIFACT,
    }
}

/// [`event_kind`] of a change of an artifact.
pub(crate) const KIND_ARTIFACT: i64 = 3;

/// A position or length as SQLite keeps it. Nothing real comes near the limit.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The reverse of [`to_i64`].
pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The binary form of an address.
pub(crate) fn address(id: &harness_model::BlockId) -> Address {
    let mut address = [0; 32];
    for (byte, pair) in address.iter_mut().zip(id.as_str().as_bytes().chunks_exact(2)) {
        *byte = (nibble(pair[0]) << 4) | nibble(pair[1]);
    }
    address
}

fn nibble(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value.to_le_bytes()[0])
}

/// The entry of `Task.history` that refers to a stored message. `None` when the address is not one.
pub(crate) fn message_entry(message_id: &str, address: &[u8], bytes: i64) -> Option<HistoryEntry> {
    let hex: String = address.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = harness_model::BlockId::parse(&hex)?;
    Some(HistoryEntry::Message {
        message_id: message_id.into(),
        block: BlockRef { id, bytes: to_u64(bytes) },
    })
}

impl EncodedBatch {
    /// Encodes a batch.
    /// Errors: `Conflict` when a write contradicts itself.
    pub(crate) fn new(batch: WriteBatch) -> Result<Self, StoreError> {
        let ops = batch.writes.into_iter().map(encode).collect::<Result<_, _>>()?;
        Ok(Self { at: batch.at.as_millis(), ops })
    }
}

fn encode(write: Write) -> Result<Op, StoreError> {
    Ok(match write {
        Write::PutBlock { block, task_id } => {
            debug_assert_eq!(
                BlockRef::to(&block.bytes),
                block.reference,
                "a block is stored at its own address"
            );
            Op::PutBlock { address: address(&block.reference.id), bytes: block.bytes, task_id }
        }
        Write::RequireTask { task_id } => Op::RequireTask { task_id },
        Write::DeleteTask { task_id, when } => Op::DeleteTask { task_id, when },
        Write::CreateWorkflow { workflow_id, workflow_type } => {
            Op::CreateWorkflow { workflow_id, workflow_type }
        }
        Write::AppendJournal { workflow_id, seq, event } => {
            Op::AppendJournal { workflow_id, seq: to_i64(seq), event: json(&event)? }
        }
        Write::SaveSnapshot { workflow_id, seq, state } => {
            Op::SaveSnapshot { workflow_id, seq: to_i64(seq), state }
        }
        Write::AnnounceActivity { workflow_id, task } => {
            let json = json(&task)?;
            Op::AnnounceActivity { workflow_id, activity_id: task.activity_id, task: json }
        }
        Write::RemoveActivity { workflow_id, activity_id } => Op::RemoveActivity { workflow_id, activity_id },
        Write::StartTimer { workflow_id, timer_id, due_at } => {
            Op::StartTimer { workflow_id, timer_id, due_at: due_at.as_millis() }
        }
        Write::RemoveTimer { workflow_id, timer_id } => Op::RemoveTimer { workflow_id, timer_id },
        Write::RecordDelivery { workflow_id, dedupe_key, cursor } => {
            Op::RecordDelivery { workflow_id, dedupe_key, cursor: cursor.map(to_i64) }
        }
        Write::Publish(publish) => Op::Publish(Box::new(encode_publish(*publish)?)),
        Write::PutRecord(record) => Op::PutRecord {
            kind: record.kind.name(),
            id: record.id,
            task_id: record.task_id,
            value: json(&record.value)?,
        },
        Write::ReplaceRecord { before, value } => Op::ReplaceRecord {
            kind: before.kind.name(),
            id: before.id,
            task_id: before.task_id,
            before: json(&before.value)?,
            value: json(&value)?,
        },
        Write::DeleteRecord { kind, id } => Op::DeleteRecord { kind: kind.name(), id },
        Write::DeleteOldRecords { kind, before, limit } => Op::DeleteOldRecords {
            kind,
            before: before.as_millis(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
        },
        Write::CloseWorkflow { workflow_id } => Op::CloseWorkflow { workflow_id },
    })
}

fn encode_publish(publish: Publish) -> Result<EncodedPublish, StoreError> {
    let Publish { task_id, key, events, record, history } = publish;
    let history =
        history.into_iter().map(|append| encode_history(append, &events)).collect::<Result<_, _>>()?;
    if let Some(record) = &record
        && record.task_id != task_id
    {
        return Err(error::conflict("a record belongs to another task than the one published to"));
    }
    let events = events
        .into_iter()
        .map(|event| Ok(EncodedEvent { json: json(&event)?, event }))
        .collect::<Result<_, StoreError>>()?;
    let record = record.as_ref().map(encode_record).transpose()?;
    Ok(EncodedPublish { task_id, key, events, record, history })
}

fn encode_history(append: HistoryAppend, events: &[TaskEvent]) -> Result<EncodedHistory, StoreError> {
    match append {
        HistoryAppend::Message { message_id, block } => Ok(EncodedHistory::Message {
            message_id: message_id.to_string(),
            address: address(&block.id),
            bytes: to_i64(block.bytes),
        }),
        HistoryAppend::Status { event } => match events.get(event) {
            Some(TaskEvent::StatusChanged(_)) => Ok(EncodedHistory::Status { event }),
            Some(TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_)) | None => {
                Err(error::conflict(format!("history refers to event {event}, which is not a status")))
            }
        },
    }
}

fn encode_record(record: &TaskRecord) -> Result<EncodedRecord, StoreError> {
    let participants = record.extension.participants.iter();
    let mut scopes: Vec<String> = participants.map(|p| participant_scope(p.id.as_str())).collect();
    scopes.push(context_scope(record.context_id.as_str()));
    scopes.push(EVERYTHING.to_owned());
    scopes.sort_unstable();
    scopes.dedup();
    Ok(EncodedRecord {
        state: state_number(record.status.state),
        status_at: record.status_at.as_millis(),
        scopes_json: json(&scopes)?,
        scopes,
        json: json(record)?,
    })
}

fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| StoreError::Unavailable {
        what: "encoding a change".to_owned(),
        source: Some(Box::new(e)),
    })
}
