//! Values for the cases.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use harness_model::{
    ArtifactChange, Content, ContentPart, ContextId, Lifecycle, LogEntry, Participant, ParticipantKind,
    ParticipantRole, StatusChange, TaskEvent, TaskExtension, TaskId, TaskRecord, TaskState, Timestamp,
    WorkflowId,
};
use serde_json::json;

use crate::{
    ActivityOptions, ActivityTask, Block, Committed, EventKind, HistoryEvent, OnCrash, Publish, Store,
    StoreError, Write, WriteBatch,
};

/// How long a case may wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Commits at time zero.
pub(super) async fn try_commit(store: &dyn Store, writes: Vec<Write>) -> Result<Committed, StoreError> {
    store.commit(WriteBatch::new(at(0), writes)).await
}

pub(super) async fn commit(store: &dyn Store, writes: Vec<Write>) -> Committed {
    try_commit(store, writes).await.unwrap()
}

/// Fails the case when the future takes too long.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("nothing happened for {PATIENCE:?}"),
    }
}

/// Whether a commit failed for its conditions.
pub(super) fn is_conflict(result: &Result<Committed, StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict { .. }))
}

pub(super) fn put_block(task: &str, block: &Block) -> Write {
    Write::PutBlock { block: block.clone(), task_id: task.into() }
}

pub(super) fn create(workflow: &str) -> Write {
    Write::CreateWorkflow { workflow_id: workflow.into(), workflow_type: "test.v1".to_owned() }
}

pub(super) fn journal_event(n: u64) -> HistoryEvent {
    HistoryEvent { at: at(0), kind: EventKind::Started { input: json!({ "n": n }) } }
}

pub(super) fn append(workflow: &str, seq: u64) -> Write {
    Write::AppendJournal { workflow_id: workflow.into(), seq, event: journal_event(seq) }
}

pub(super) fn save_snapshot(workflow: &str, seq: u64, state: &'static str) -> Write {
    Write::SaveSnapshot { workflow_id: workflow.into(), seq, state: Bytes::from_static(state.as_bytes()) }
}

pub(super) fn activity(id: &str) -> ActivityTask {
    ActivityTask {
        activity_id: id.into(),
        name: "act.v1".to_owned(),
        input: json!({ "for": id }),
        options: ActivityOptions {
            start_to_close: Duration::from_millis(1_500),
            on_crash: OnCrash::ReportUnknown,
        },
        trace: None,
    }
}

pub(super) fn announce(workflow: &str, id: &str) -> Write {
    Write::AnnounceActivity { workflow_id: workflow.into(), task: activity(id) }
}

pub(super) fn timer(workflow: &str, id: &str, due_at: i64) -> Write {
    Write::StartTimer { workflow_id: workflow.into(), timer_id: id.into(), due_at: at(due_at) }
}

pub(super) fn record_delivery(workflow: &str, key: &str, cursor: Option<u64>) -> Write {
    Write::RecordDelivery { workflow_id: workflow.into(), dedupe_key: key.to_owned(), cursor }
}

/// A change of status that says which one it is.
pub(super) fn status(state: TaskState, text: &str) -> StatusChange {
    StatusChange::to(state).with_text(Content::from(text))
}

pub(super) fn status_event(text: &str) -> TaskEvent {
    TaskEvent::StatusChanged(status(TaskState::Working, text))
}

/// The text of a status entry.
pub(super) fn text_of(entry: &LogEntry) -> &str {
    match &entry.event {
        TaskEvent::StatusChanged(StatusChange { text: Some(Content::Inline(text)), .. }) => text,
        TaskEvent::StatusChanged(_) | TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => {
            panic!("entry {} has no text", entry.seq)
        }
    }
}

pub(super) fn artifact(id: &str, text: &str, append: bool) -> ArtifactChange {
    ArtifactChange {
        artifact_id: id.into(),
        name: Some(format!("name of {id}")),
        description: None,
        parts: vec![ContentPart::text(Content::from(text))],
        append,
        last_chunk: false,
    }
}

/// A publication of events and nothing else.
pub(super) fn publish(task: &str, key: &str, events: Vec<TaskEvent>) -> Publish {
    Publish { task_id: task.into(), key: key.to_owned(), events, record: None, history: Vec::new() }
}

pub(super) fn write(publish: Publish) -> Write {
    Write::Publish(Box::new(publish))
}

/// A task that is visible to `participants`.
pub(super) fn record(
    task: &str,
    context: &str,
    state: TaskState,
    status_at: i64,
    participants: &[&str],
) -> TaskRecord {
    let participants = participants.iter().map(|id| Participant {
        id: (*id).into(),
        kind: ParticipantKind::Human,
        role: ParticipantRole::Reporter,
        display_name: String::new(),
    });
    TaskRecord {
        usage: Default::default(),
        task_id: task.into(),
        context_id: ContextId::from(context),
        lifecycle: Lifecycle::Conversation,
        status: StatusChange::to(state),
        status_at: at(status_at),
        created_at: at(1),
        extension: TaskExtension {
            name: format!("task {task}"),
            goal: "g".to_owned(),
            participants: participants.collect(),
            ..TaskExtension::default()
        },
    }
}

/// Publishes a record with a key of its own.
pub(super) fn put_task(record: TaskRecord) -> Write {
    let key = format!("{}-{}-{}", record.status.state.name(), record.status_at, record.extension.name);
    let task_id = record.task_id.clone();
    write(Publish { task_id, key, events: Vec::new(), record: Some(record), history: Vec::new() })
}

/// A workflow with one event, and its task.
pub(super) async fn workflow(store: &dyn Store, id: &str) -> (WorkflowId, TaskId) {
    commit(store, vec![create(id), append(id, 0)]).await;
    (id.into(), id.into())
}

/// The sequence numbers of entries.
pub(super) fn seqs(entries: &[Arc<LogEntry>]) -> Vec<u64> {
    entries.iter().map(|entry| entry.seq).collect()
}
