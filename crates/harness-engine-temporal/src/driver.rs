//! The driver that leaves everything to Temporal.

use std::sync::{Arc, OnceLock};

use harness_journal::{Changes, Driver, Found, Host};
use harness_model::{TaskId, WorkflowId};
use harness_ports::{ActivityTask, Record, RecordKind, Write};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{running::Running, wakes::Wakes};

/// Wakes the Temporal workflow when a process from outside left something to do.
pub(crate) struct TemporalDriver {
    pub(crate) running: Arc<Running>,
    /// Set once, right after the host came to be.
    pub(crate) wakes: OnceLock<Arc<Wakes>>,
}

impl TemporalDriver {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        Self { running, wakes: OnceLock::new() }
    }
}

impl Driver for TemporalDriver {
    fn shares_store(&self) -> bool {
        true
    }

    fn note(&self, workflow_id: &WorkflowId, changes: &Changes, writes: &mut Vec<Write>) {
        if needs_waking(changes) {
            writes.push(Write::PutRecord(Record {
                kind: RecordKind::PendingWake,
                id: note_id(workflow_id, changes.seq),
                task_id: TaskId::from(workflow_id),
                value: json!({}),
            }));
        }
    }

    fn committed(&self, _host: &Arc<Host>, workflow_id: &WorkflowId, changes: &Changes) {
        for activity_id in &changes.stopped {
            self.running.stop(workflow_id, activity_id);
        }
        if needs_waking(changes)
            && let Some(wakes) = self.wakes.get()
        {
            wakes.send_soon(workflow_id, note_id(workflow_id, changes.seq));
        }
    }

    fn begin(
        &self,
        _host: &Arc<Host>,
        _workflow_id: &WorkflowId,
        _task: ActivityTask,
    ) -> Option<CancellationToken> {
        None
    }

    fn found(&self, _task: &ActivityTask) -> Found {
        Found::Elsewhere
    }
}

/// Who drives the workflow reads what came of its own orders and of executions; of anything else it has to be told.
fn needs_waking(changes: &Changes) -> bool {
    changes.unasked && (changes.starts || changes.timers || changes.closed || !changes.stopped.is_empty())
}

/// One note for each position, so that a note that was made meanwhile is not taken away with an older one.
fn note_id(workflow_id: &WorkflowId, seq: u64) -> String {
    format!("{workflow_id}/{seq}")
}
