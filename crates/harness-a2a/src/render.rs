//! Domain values as the wire shows them. Content comes from the store, one read for each block.

use std::{collections::HashMap, sync::Arc};

use a2a::{Message, Part, PartContent, Role, StreamResponse, Task, TaskState, TaskStatus};
use a2a::{TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::future::{BoxFuture, try_join_all};
use harness_model::{
    AgentId, ArtifactChange, BlockRef, Content, ContentBody, ContentPart, ContextId, HistoryEntry, LogEntry,
    PartBody, StatusChange, TaskId, TaskSnapshot, TaskUsage, Timestamp, names,
};
use harness_ports::Store;
use serde_json::{Map, Value, json};

use crate::A2aError;

/// Messages that are read from the store at once.
const READS_AT_ONCE: usize = 16;

/// Which parts of a task a response shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Artifacts {
    /// No `artifacts` key at all.
    Omitted,
    /// A key when there are any.
    WhenAny,
    /// A key in any case.
    Always,
}

/// Turns stored values into wire types.
#[derive(Clone)]
pub(crate) struct Renderer {
    store: Arc<dyn Store>,
    agent_id: AgentId,
}

/// Which task a message or an event belongs to.
#[derive(Clone, Copy)]
pub(crate) struct TaskIds<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) context: &'a ContextId,
}

impl Renderer {
    pub(crate) fn new(store: Arc<dyn Store>, agent_id: AgentId) -> Self {
        Self { store, agent_id }
    }

    /// A task as the snapshot has it.
    pub(crate) async fn task(&self, snapshot: &TaskSnapshot, show: Artifacts) -> Result<Task, A2aError> {
        let record = &snapshot.record;
        let ids = TaskIds { task: &record.task_id, context: &record.context_id };
        let mut history = Vec::with_capacity(snapshot.history.len());
        for chunk in snapshot.history.chunks(READS_AT_ONCE) {
            let reads = chunk.iter().map(|entry| self.history_entry(ids, entry));
            history.extend(try_join_all(reads).await?.into_iter().flatten());
        }
        let mut artifacts = Vec::with_capacity(snapshot.artifacts.len());
        for artifact in &snapshot.artifacts {
            artifacts.push(a2a::Artifact {
                artifact_id: artifact.artifact_id.as_str().to_owned(),
                name: artifact.name.clone(),
                description: artifact.description.clone(),
                parts: self.content_parts(&artifact.parts).await?,
                metadata: None,
                extensions: None,
            });
        }
        let shown = match show {
            Artifacts::Omitted => false,
            Artifacts::WhenAny => !artifacts.is_empty(),
            Artifacts::Always => true,
        };
        Ok(Task {
            artifacts: shown.then_some(artifacts),
            history: (!history.is_empty()).then_some(history),
            metadata: Some(task_metadata(snapshot, &record.status)?),
            ..self.bare_task(ids, snapshot.status_seq, record.status_at, &record.status).await?
        })
    }

    /// The task as it was when it was created: SUBMITTED, with nothing said yet.
    pub(crate) async fn task_at_creation(
        &self,
        snapshot: &TaskSnapshot,
        at: Timestamp,
    ) -> Result<Task, A2aError> {
        let ids = TaskIds { task: &snapshot.record.task_id, context: &snapshot.record.context_id };
        let status = StatusChange::to(harness_model::TaskState::Submitted);
        let metadata = Some(task_metadata(snapshot, &status)?);
        Ok(Task { metadata, ..self.bare_task(ids, 0, at, &status).await? })
    }

    async fn bare_task(
        &self,
        ids: TaskIds<'_>,
        seq: u64,
        at: Timestamp,
        status: &StatusChange,
    ) -> Result<Task, A2aError> {
        Ok(Task {
            id: ids.task.as_str().to_owned(),
            context_id: ids.context.as_str().to_owned(),
            status: self.status(ids, seq, at, status).await?,
            artifacts: None,
            history: None,
            metadata: None,
        })
    }

    /// A status as a stream event.
    pub(crate) async fn status_update(
        &self,
        ids: TaskIds<'_>,
        entry: &LogEntry,
        status: &StatusChange,
    ) -> Result<StreamResponse, A2aError> {
        Ok(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: ids.task.as_str().to_owned(),
            context_id: ids.context.as_str().to_owned(),
            status: self.status(ids, entry.seq, entry.at, status).await?,
            metadata: sub_state_metadata(status),
        }))
    }

    /// A change of an artifact as a stream event.
    pub(crate) async fn artifact_update(
        &self,
        ids: TaskIds<'_>,
        change: &ArtifactChange,
    ) -> Result<StreamResponse, A2aError> {
        Ok(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: ids.task.as_str().to_owned(),
            context_id: ids.context.as_str().to_owned(),
            artifact: a2a::Artifact {
                artifact_id: change.artifact_id.as_str().to_owned(),
                name: change.name.clone(),
                description: change.description.clone(),
                parts: self.content_parts(&change.parts).await?,
                metadata: None,
                extensions: None,
            },
            append: change.append.then_some(true),
            last_chunk: change.last_chunk.then_some(true),
            metadata: None,
        }))
    }

    async fn status(
        &self,
        ids: TaskIds<'_>,
        seq: u64,
        at: Timestamp,
        status: &StatusChange,
    ) -> Result<TaskStatus, A2aError> {
        Ok(TaskStatus {
            state: wire_state(status.state),
            message: self.status_message(ids, seq, status).await?,
            timestamp: Some(wire_time(at)),
        })
    }

    /// What the agent says with a status: its words or its question, and the tool calls of the turn.
    async fn status_message(
        &self,
        ids: TaskIds<'_>,
        seq: u64,
        status: &StatusChange,
    ) -> Result<Option<Message>, A2aError> {
        let mut parts = Vec::new();
        let mut extensions = Vec::new();
        if let Some(text) = &status.text {
            parts.push(Part::text(self.text(text).await?));
        }
        if let Some(help) = &status.help {
            let question = self.text(&help.question).await?;
            let options = match help.options.as_slice() {
                [] => String::new(),
                options => format!("\nOptions: {}", options.join(", ")),
            };
            // The words of a status that asks are the question.
            parts = vec![
                Part::text(format!("{question}{options}")),
                Part::data(json!({
                    "channel_id": ids.task.as_str(),
                    "sender": self.agent_id.as_str(),
                    "kind": "help_request",
                    "text": question,
                }))
                .with_media_type(names::CHANNEL_MEDIA_TYPE),
            ];
            extensions.push(names::CHANNEL_EXTENSION.to_owned());
        }
        if !status.tool_calls.is_empty() {
            parts.push(
                Part::data(json!({"tool_calls": status.tool_calls})).with_media_type(names::TASK_MEDIA_TYPE),
            );
            extensions.push(names::TASK_EXTENSION.to_owned());
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let kind = if status.help.is_some() { "help" } else { "status" };
        Ok(Some(Message {
            message_id: format!("{}:{kind}:{seq}", ids.task),
            context_id: Some(ids.context.as_str().to_owned()),
            task_id: Some(ids.task.as_str().to_owned()),
            role: Role::Agent,
            parts,
            metadata: sub_state_metadata(status),
            extensions: (!extensions.is_empty()).then_some(extensions),
            reference_task_ids: None,
        }))
    }

    fn history_entry<'a>(
        &'a self,
        ids: TaskIds<'a>,
        entry: &'a HistoryEntry,
    ) -> BoxFuture<'a, Result<Option<Message>, A2aError>> {
        Box::pin(async move {
            match entry {
                HistoryEntry::Message { block, .. } => self.stored_message(ids, block).await.map(Some),
                HistoryEntry::Status { seq, status } => self.status_message(ids, *seq, status).await,
            }
        })
    }

    async fn stored_message(&self, ids: TaskIds<'_>, block: &BlockRef) -> Result<Message, A2aError> {
        let bytes = self.block(block).await?;
        let stored: harness_model::Message = serde_json::from_slice(&bytes).map_err(A2aError::internal)?;
        let mut parts = Vec::with_capacity(stored.parts.len());
        for part in stored.parts {
            let content = match part.body {
                PartBody::Text(text) => PartContent::Text(text),
                PartBody::Data(value) => PartContent::Data(value),
                PartBody::Url(url) => PartContent::Url(url),
                PartBody::Raw(block) => PartContent::Raw(self.block(&block).await?.to_vec()),
            };
            parts.push(Part {
                content,
                filename: part.filename,
                media_type: part.media_type,
                metadata: non_empty(part.metadata),
            });
        }
        let references: Vec<String> =
            stored.reference_task_ids.iter().map(|id| id.as_str().to_owned()).collect();
        Ok(Message {
            message_id: stored.message_id.as_str().to_owned(),
            context_id: Some(ids.context.as_str().to_owned()),
            task_id: Some(ids.task.as_str().to_owned()),
            role: match stored.role {
                harness_model::Role::User => Role::User,
                harness_model::Role::Agent => Role::Agent,
            },
            parts,
            metadata: non_empty(stored.metadata),
            extensions: (!stored.extensions.is_empty()).then_some(stored.extensions),
            reference_task_ids: (!references.is_empty()).then_some(references),
        })
    }

    async fn content_parts(&self, parts: &[ContentPart]) -> Result<Vec<Part>, A2aError> {
        let mut out = Vec::with_capacity(parts.len());
        for part in parts {
            let content = match &part.body {
                ContentBody::Text(text) => PartContent::Text(self.text(text).await?),
                ContentBody::Data(json) => {
                    let text = self.text(json).await?;
                    PartContent::Data(serde_json::from_str(&text).map_err(A2aError::internal)?)
                }
                ContentBody::Raw(block) => PartContent::Raw(self.block(block).await?.to_vec()),
                ContentBody::Url(url) => PartContent::Url(url.clone()),
            };
            out.push(Part {
                content,
                filename: part.filename.clone(),
                media_type: part.media_type.clone(),
                metadata: None,
            });
        }
        Ok(out)
    }

    async fn text(&self, content: &Content) -> Result<String, A2aError> {
        match content {
            Content::Inline(text) => Ok(text.clone()),
            Content::Block(block) => {
                let bytes = self.block(block).await?;
                String::from_utf8(bytes.to_vec()).map_err(A2aError::internal)
            }
        }
    }

    async fn block(&self, block: &BlockRef) -> Result<Bytes, A2aError> {
        let found = self.store.block(&block.id).await?;
        found.ok_or_else(|| A2aError::internal(format!("block {} is not in the store", block.id)))
    }
}

fn task_metadata(snapshot: &TaskSnapshot, status: &StatusChange) -> Result<HashMap<String, Value>, A2aError> {
    let extension = serde_json::to_value(&snapshot.record.extension).map_err(A2aError::internal)?;
    let mut metadata = sub_state_metadata(status).unwrap_or_default();
    metadata.insert(names::TASK_KEY.to_owned(), extension);
    if snapshot.record.usage != TaskUsage::default() {
        let usage = serde_json::to_value(snapshot.record.usage).map_err(A2aError::internal)?;
        metadata.insert(names::USAGE_KEY.to_owned(), usage);
    }
    Ok(metadata)
}

fn sub_state_metadata(status: &StatusChange) -> Option<HashMap<String, Value>> {
    status.sub_state.map(|sub| HashMap::from([(names::SUB_STATE_KEY.to_owned(), json!(sub.name()))]))
}

fn non_empty(map: Map<String, Value>) -> Option<HashMap<String, Value>> {
    (!map.is_empty()).then(|| map.into_iter().collect())
}

/// The protocol's name of a state.
pub(crate) fn wire_state(state: harness_model::TaskState) -> TaskState {
    match state {
        harness_model::TaskState::Submitted => TaskState::Submitted,
        harness_model::TaskState::Working => TaskState::Working,
        harness_model::TaskState::InputRequired => TaskState::InputRequired,
        harness_model::TaskState::AuthRequired => TaskState::AuthRequired,
        harness_model::TaskState::Completed => TaskState::Completed,
        harness_model::TaskState::Failed => TaskState::Failed,
        harness_model::TaskState::Canceled => TaskState::Canceled,
        harness_model::TaskState::Rejected => TaskState::Rejected,
    }
}

/// The domain's name of a state; `None` for the unspecified one.
pub(crate) fn domain_state(state: &TaskState) -> Option<harness_model::TaskState> {
    harness_model::TaskState::ALL.into_iter().find(|candidate| wire_state(*candidate) == *state)
}

/// A point in time as the wire type writes it: RFC 3339 with `Z`.
fn wire_time(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default()
}
