//! What operators ask: readiness, the picture of the last tick, and the purge of a task.

use std::{fmt, time::Duration};

use harness_model::{CANCEL_SIGNAL, CancelRequest, ParticipantId, TaskEvent, TaskId, Timestamp, WorkflowId};
use harness_ports::{
    DeleteWhen, DeletedRows, Delivered, Delivery, EngineError, Record, RecordKind, Signal, Write, WriteBatch,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{A2aService, Inner};
use crate::A2aError;

/// Time for each part of the answer to a readiness probe.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// Time for a canceled task to end before it is deleted all the same.
const STOP_TIME: Duration = Duration::from_secs(10);
/// Time for what a task that has ended still has under way.
const QUIET_TIME: Duration = Duration::from_secs(2);
const QUIET_PAUSE: Duration = Duration::from_millis(20);
/// Final status of a task that is purged while it goes on.
const PURGE_REASON: &str = "purged by an operator";
/// Who cancels it. No participant has this id.
const PURGER: &str = "_operator";
/// A workflow that does not exist.
const NO_WORKFLOW: &str = "_ready";

/// Why a process takes no work now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unready {
    /// It is about to end.
    Draining,
    /// The store takes no writes.
    Store,
    /// The engine takes no deliveries.
    Engine,
    /// What the engine needs does not answer.
    Outage,
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draining => "draining",
            Self::Store => "the store takes no writes",
            Self::Engine => "the engine takes no deliveries",
            Self::Outage => "the engine's server does not answer",
        })
    }
}

impl A2aService {
    /// From now on the process says that it is not ready for work. What arrives all the same is served as long as the
    /// server runs.
    pub fn drain(&self) {
        self.inner.draining.cancel();
    }

    /// Whether this process can take work: it writes to the store, asks the engine, and hears whether the engine reaches
    /// what it needs.
    pub(crate) async fn readiness(&self) -> Result<(), Unready> {
        let inner = &self.inner;
        if inner.draining.is_cancelled() {
            return Err(Unready::Draining);
        }
        let now = inner.clock.now();
        let record = Record::of_process("ready", json!({ "at": now.to_rfc3339() }));
        let written = inner.store.commit(WriteBatch::new(now, vec![Write::PutRecord(record)]));
        if !matches!(timeout(PROBE_TIME, written).await, Ok(Ok(_))) {
            return Err(Unready::Store);
        }
        let nobody = delivery(&TaskId::from(NO_WORKFLOW)).map_err(|_| Unready::Engine)?;
        match timeout(PROBE_TIME, inner.engine.deliver(nobody)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return Err(Unready::Engine),
        }
        match inner.engine.outage() {
            None => Ok(()),
            Some(reason) => {
                warn!(reason, "not ready");
                Err(Unready::Outage)
            }
        }
    }

    /// What the last tick saw; before the first one, no tasks.
    pub(crate) async fn monitor(&self) -> Result<Value, A2aError> {
        let store = &self.inner.store;
        let records = store.records(RecordKind::Monitor, &Record::no_task(), 16).await?;
        let latest = records.into_iter().find(|record| record.id == Record::MONITOR_ID);
        Ok(latest.map_or_else(|| json!({ "tasks": [] }), |record| record.value))
    }

    /// Ends a task if it goes on, then deletes everything of it. A workflow that cannot be ended (it is set aside, or takes
    /// too long) is deleted all the same; what it still does is not kept.
    /// Errors: the store or the engine failed; the task is as it was, or has been canceled.
    pub(crate) async fn purge(&self, task_id: &TaskId) -> Result<DeletedRows, A2aError> {
        let inner = &self.inner;
        inner.end(task_id).await?;
        let gone = inner.delete_quiet(task_id).await?;
        let deleted = match gone {
            Some(deleted) => deleted,
            None => inner.delete(task_id, DeleteWhen::Always).await?,
        };
        if let Err(error) = inner.engine.forget(&WorkflowId::from(task_id)).await {
            // It holds no content, and ends by itself when it next looks for its task.
            warn!(%task_id, %error, "the workflow of a purged task is still there");
        }
        info!(%task_id, rows = deleted.values().sum::<u64>(), "a task was purged");
        Ok(deleted)
    }
}

impl Inner {
    /// Cancels a task that goes on and waits for its end.
    async fn end(&self, task_id: &TaskId) -> Result<(), A2aError> {
        let cursor = match self.engine.deliver(delivery(task_id)?).await {
            Ok(Delivered::Accepted { cursor } | Delivered::Duplicate { cursor }) => cursor,
            Ok(Delivered::Closed | Delivered::NotFound) => return Ok(()),
            Ok(Delivered::Refused { reason }) => {
                warn!(%task_id, reason, "a task that is purged does not let itself be canceled");
                return Ok(());
            }
            Err(error @ (EngineError::SetAside { .. } | EngineError::UnknownType(_))) => {
                warn!(%task_id, %error, "a task is purged that cannot be canceled");
                return Ok(());
            }
            Err(error @ (EngineError::Store(_) | EngineError::Stopping | EngineError::Unavailable(_))) => {
                return Err(error.into());
            }
        };
        let mut log = self.store.follow(task_id, cursor);
        let ended = async {
            while let Some(entry) = futures::StreamExt::next(&mut log).await {
                match &entry?.event {
                    TaskEvent::StatusChanged(status) if status.state.is_terminal() => break,
                    TaskEvent::StatusChanged(_) | TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => {}
                }
            }
            Ok(())
        };
        timeout(STOP_TIME, ended).await.unwrap_or_else(|_| {
            warn!(%task_id, "a task that is purged has not ended in time");
            Ok(())
        })
    }

    /// Deletes a task once nothing of it goes on; `None` when that takes too long.
    async fn delete_quiet(&self, task_id: &TaskId) -> Result<Option<DeletedRows>, A2aError> {
        let ever = DeleteWhen::EndedBefore(Timestamp::from_millis(i64::MAX));
        let quiet = async {
            loop {
                let deleted = self.delete(task_id, ever).await?;
                if !deleted.is_empty() {
                    return Ok(deleted);
                }
                let workflow = self.store.workflow(&WorkflowId::from(task_id)).await?;
                if workflow.is_none_or(|workflow| !workflow.closed) {
                    // There is nothing to wait for.
                    return Ok(DeletedRows::new());
                }
                sleep(QUIET_PAUSE).await;
            }
        };
        match timeout(QUIET_TIME, quiet).await {
            Ok(deleted) => deleted.map(|deleted| (!deleted.is_empty()).then_some(deleted)),
            Err(_) => Ok(None),
        }
    }

    async fn delete(&self, task_id: &TaskId, when: DeleteWhen) -> Result<DeletedRows, A2aError> {
        let write = Write::DeleteTask { task_id: task_id.clone(), when };
        Ok(self.store.commit(WriteBatch::new(self.clock.now(), vec![write])).await?.deleted)
    }
}

/// A request to cancel, from the operator.
fn delivery(task_id: &TaskId) -> Result<Delivery, A2aError> {
    let told = CancelRequest { reason: PURGE_REASON.to_owned(), by: ParticipantId::from(PURGER) };
    let signal = Signal {
        name: CANCEL_SIGNAL.to_owned(),
        payload: serde_json::to_value(&told).map_err(A2aError::internal)?,
        dedupe_key: None,
        trace: None,
    };
    let workflow_id = WorkflowId::from(task_id);
    Ok(Delivery { workflow_id, start: None, signal: Some(signal), blocks: Vec::new() })
}
