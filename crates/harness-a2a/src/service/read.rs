//! GetTask, ListTasks, CancelTask and SubscribeToTask.

use std::time::Duration;

use a2a::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, SubscribeToTaskRequest, Task,
};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use harness_model::{
    CANCEL_SIGNAL, CancelRequest, ContextId, ParticipantId, TaskEvent, TaskId, TaskSnapshot, Timestamp,
    WorkflowId,
};
use harness_ports::{Delivered, Delivery, Signal, TaskFields, TaskQuery};
use tracing::debug;

use super::{A2aService, Call, Events, Inner, feed::Feed, inbound::check_id, page_token};
use crate::{
    A2aError, ErrorKind, access,
    render::{Artifacts, domain_state},
};

/// Messages of `Task.history` when a send does not say how many.
pub(super) const HISTORY_DEFAULT: usize = 100;
/// Messages of `Task.history` in any response, and in GetTask when it does not say how many.
const HISTORY_MAX: usize = 1_000;
/// Tasks of a page when a listing does not say how many, and at most. Source: A2A 1.0.
const PAGE_SIZE_DEFAULT: i32 = 50;
const PAGE_SIZE_MAX: i32 = 100;
/// How long CancelTask waits for the task to end before it answers with the task as it is.
const CANCEL_WAIT: Duration = Duration::from_secs(30);
/// Text of the status that a client's cancel ends a task with.
const CANCEL_REASON: &str = "cancelled by client";

impl A2aService {
    /// A task as it is now.
    pub(crate) async fn get(&self, call: &Call, request: GetTaskRequest) -> Result<Task, A2aError> {
        let fields =
            TaskFields { history: history_fields(request.history_length, HISTORY_MAX)?, artifacts: true };
        let (snapshot, _) = self.inner.visible_task(call, &request.id, fields).await?;
        self.inner.renderer.task(&snapshot, Artifacts::WhenAny).await
    }

    /// The caller's tasks, newest status first.
    pub(crate) async fn list(
        &self,
        call: &Call,
        request: ListTasksRequest,
    ) -> Result<ListTasksResponse, A2aError> {
        let page_size = request.page_size.unwrap_or(PAGE_SIZE_DEFAULT);
        if !(1..=PAGE_SIZE_MAX).contains(&page_size) {
            let text = format!("pageSize must be from 1 to {PAGE_SIZE_MAX}");
            return Err(A2aError::invalid_field("pageSize", text));
        }
        let after = request.page_token.filter(|token| !token.is_empty());
        let after = after.as_deref().map(page_token::decode).transpose()?;
        let context_id = request.context_id.filter(|id| !id.is_empty());
        if let Some(id) = &context_id {
            check_id("contextId", id)?;
        }
        let artifacts = request.include_artifacts.unwrap_or(false);
        let fields = TaskFields { history: history_fields(request.history_length, 0)?, artifacts };
        let Some(reader) = access::reader(&self.inner.config, call)? else {
            return Ok(ListTasksResponse {
                tasks: Vec::new(),
                next_page_token: String::new(),
                page_size,
                total_size: 0,
            });
        };
        let page = self.inner.store.tasks(TaskQuery {
            visible_to: Some(reader),
            context_id: context_id.map(ContextId::from),
            state: request.status.as_ref().and_then(domain_state),
            status_since: request.status_timestamp_after.as_ref().map(at_least),
            after,
            limit: usize::try_from(page_size).unwrap_or_default(),
            fields,
        });
        let page = page.await?;
        let show = if artifacts { Artifacts::Always } else { Artifacts::Omitted };
        let mut tasks = Vec::with_capacity(page.tasks.len());
        for snapshot in &page.tasks {
            tasks.push(self.inner.renderer.task(snapshot, show).await?);
        }
        Ok(ListTasksResponse {
            tasks,
            next_page_token: page.next.as_ref().map(page_token::encode).unwrap_or_default(),
            page_size,
            total_size: i32::try_from(page.total).unwrap_or(i32::MAX),
        })
    }

    /// Asks a task to end and waits, for a bounded time, until it has.
    pub(crate) async fn cancel(&self, call: &Call, request: CancelTaskRequest) -> Result<Task, A2aError> {
        let inner = &self.inner;
        let (snapshot, reader) = inner.visible_task(call, &request.id, TaskFields::BARE).await?;
        let task_id = snapshot.record.task_id;
        if snapshot.record.status.state.is_terminal() {
            return Err(not_cancelable());
        }
        let told = CancelRequest { reason: CANCEL_REASON.to_owned(), by: reader };
        let signal = Signal {
            name: CANCEL_SIGNAL.to_owned(),
            payload: serde_json::to_value(&told).map_err(A2aError::internal)?,
            dedupe_key: None,
            trace: call.trace.clone(),
        };
        let workflow_id = WorkflowId::from(&task_id);
        let delivery = Delivery { workflow_id, start: None, signal: Some(signal), blocks: Vec::new() };
        let cursor = match inner.engine.deliver(delivery).await? {
            Delivered::Accepted { cursor } | Delivered::Duplicate { cursor } => cursor,
            Delivered::NotFound => return Err(A2aError::task_not_found()),
            Delivered::Closed => return Err(not_cancelable()),
            Delivered::Refused { reason } => {
                return Err(A2aError::new(ErrorKind::TaskNotCancelable, reason));
            }
        };
        inner.wait_terminal(&task_id, cursor, call).await?;
        let fields = TaskFields { history: Some(HISTORY_DEFAULT), artifacts: true };
        let snapshot = inner.existing(&task_id, fields, call).await?;
        inner.renderer.task(&snapshot, Artifacts::WhenAny).await
    }

    /// Streams a task: its picture now and what follows, or what follows the entry that the client saw last.
    ///
    /// The stream ends with the next status that ends a turn. An idle task that waits for a message is therefore
    /// watched until its next turn has ended, while a stream that was cut short ends where it would have ended.
    pub(crate) async fn subscribe(
        &self,
        call: &Call,
        request: SubscribeToTaskRequest,
    ) -> Result<Events, A2aError> {
        let fields = TaskFields { history: Some(HISTORY_DEFAULT), artifacts: call.after.is_none() };
        let (snapshot, _) = self.inner.visible_task(call, &request.id, fields).await?;
        let terminal = snapshot.record.status.state.is_terminal();
        let feed = match call.after {
            None if terminal => {
                let text = "the task has ended; resume with Last-Event-ID to replay its log, or get the task";
                return Err(A2aError::unsupported(text));
            }
            None => Feed::of_task(&self.inner, snapshot, call.stop.clone()),
            Some(after) if after > snapshot.last_seq => {
                let text =
                    format!("the task has no event {after} yet; its last one is {}", snapshot.last_seq);
                return Err(A2aError::invalid_params(text));
            }
            Some(after) => Feed::resumed(&self.inner, &snapshot, after, call.stop.clone()),
        };
        // A task that was deleted meanwhile has a stream that never goes on; from here on it would end.
        self.inner.visible_task(call, &request.id, TaskFields::BARE).await?;
        Ok(feed.into_events())
    }
}

impl Inner {
    /// The task and its reader, if there is such a task and the reader takes part in it.
    pub(super) async fn visible_task(
        &self,
        call: &Call,
        id: &str,
        fields: TaskFields,
    ) -> Result<(TaskSnapshot, ParticipantId), A2aError> {
        if id.is_empty() {
            return Err(A2aError::invalid_field("id", "id must not be empty"));
        }
        let reader = access::reader(&self.config, call)?;
        if check_id("id", id).is_err() {
            return Err(A2aError::task_not_found());
        }
        let snapshot = self.seen_by(reader.as_ref(), &TaskId::from(id), fields).await?;
        // Only somebody who takes part gets here.
        let reader = reader.ok_or_else(A2aError::task_not_found)?;
        Ok((snapshot, reader))
    }

    /// The task if the reader takes part in it. Until that is known no more of it is read than its record, so that the
    /// time of the answer does not tell a long task of others from one that does not exist.
    pub(super) async fn seen_by(
        &self,
        reader: Option<&ParticipantId>,
        task_id: &TaskId,
        fields: TaskFields,
    ) -> Result<TaskSnapshot, A2aError> {
        let bare = access::visible(task_id, self.store.task(task_id, TaskFields::BARE).await?, reader)?;
        if fields == TaskFields::BARE {
            return Ok(bare);
        }
        self.store.task(task_id, fields).await?.ok_or_else(A2aError::task_not_found)
    }

    async fn wait_terminal(
        &self,
        task_id: &TaskId,
        cursor: Option<u64>,
        call: &Call,
    ) -> Result<(), A2aError> {
        let mut log = self.store.follow(task_id, cursor);
        let ended = async {
            while let Some(entry) = log.next().await {
                match &entry?.event {
                    TaskEvent::StatusChanged(status) if status.state.is_terminal() => break,
                    TaskEvent::StatusChanged(_) | TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => {}
                }
            }
            Ok(())
        };
        tokio::select! {
            biased;
            () = call.stop.cancelled() => Err(A2aError::stopping()),
            ended = tokio::time::timeout(CANCEL_WAIT, ended) => ended.unwrap_or_else(|_| {
                debug!(%task_id, "a cancelled task has not ended yet; answering with the task as it is");
                Ok(())
            }),
        }
    }
}

fn not_cancelable() -> A2aError {
    A2aError::new(ErrorKind::TaskNotCancelable, "the task has ended and cannot be canceled")
}

/// How many messages of the history to read. Source: A2A 1.0 section 3.2.4.
pub(super) fn history_fields(asked: Option<i32>, default: usize) -> Result<Option<usize>, A2aError> {
    match asked.map(usize::try_from) {
        None => Ok(Some(default)),
        Some(Ok(length)) => Ok(Some(length.min(HISTORY_MAX))),
        Some(Err(_)) => Err(A2aError::invalid_field("historyLength", "historyLength must not be negative")),
    }
}

/// The first whole millisecond that is not before `time`.
fn at_least(time: &DateTime<Utc>) -> Timestamp {
    let fraction = i64::from(!time.timestamp_subsec_nanos().is_multiple_of(1_000_000));
    Timestamp::from_millis(time.timestamp_millis().saturating_add(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_within_a_millisecond_round_up() {
        let at = |text: &str| at_least(&text.parse().unwrap()).to_rfc3339();
        assert_eq!(at("2024-02-29T12:34:56.789Z"), "2024-02-29T12:34:56.789Z");
        assert_eq!(at("2024-02-29T12:34:56.789000001Z"), "2024-02-29T12:34:56.790Z");
    }
}
