//! Signals to other workflows: announced like an activity in the commit of the event that caused them, delivered after
//! it, and delivered again after a crash. Their dedupe key makes the repeats harmless.

use std::{sync::Arc, time::Duration};

use harness_model::{ActivityId, WorkflowId};
use harness_ports::{
    ActivityOptions, ActivityTask, Delivered, Delivery, EngineError, OnCrash, Signal, StartWorkflow,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Host, input::Input};

/// Name of the host's own activity. Workflows cannot use it: it is never handed to the activity host.
const SIGNAL_ACTIVITY: &str = "engine.signal_workflow.v1";
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The command that caused a signal.
pub(crate) struct Origin<'a> {
    pub(crate) workflow_id: &'a WorkflowId,
    pub(crate) seq: u64,
    pub(crate) index: usize,
}

/// Recorded input of the activity.
#[derive(Debug, Serialize, Deserialize)]
struct OutboundSignal {
    workflow_id: WorkflowId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<StartWorkflow>,
    signal: Signal,
}

/// The announcement of a signal.
pub(crate) fn task(
    origin: &Origin<'_>,
    workflow_id: WorkflowId,
    start: Option<StartWorkflow>,
    mut signal: Signal,
) -> ActivityTask {
    let Origin { workflow_id: from, seq, index } = origin;
    signal.dedupe_key.get_or_insert_with(|| format!("wf:{from}:{seq}:{index}"));
    ActivityTask {
        activity_id: ActivityId::new(format!("engine:signal:{seq}:{index}")),
        name: SIGNAL_ACTIVITY.to_owned(),
        input: json!(OutboundSignal { workflow_id, start, signal }),
        // Sending ends when the signal has arrived; the time limit is not used.
        options: ActivityOptions { start_to_close: Duration::ZERO, on_crash: OnCrash::Rerun },
        trace: None,
    }
}

/// Whether an announced activity is a signal on its way.
pub fn is_outbound(task: &ActivityTask) -> bool {
    task.name == SIGNAL_ACTIVITY
}

/// Sends an announced signal from this process, and tries until it has arrived. The token stops it.
pub fn send(host: &Arc<Host>, from: &WorkflowId, task: ActivityTask) -> CancellationToken {
    let cancel = host.halt.child_token();
    // Whatever is left when the engine stops is sent after the restart.
    if !host.is_draining() {
        let (host, from, stop) = (Arc::clone(host), from.clone(), cancel.clone());
        host.work.clone().spawn(async move {
            let _stopped = stop.run_until_cancelled(host.send_patiently(&from, task)).await;
        });
    }
    cancel
}

impl Host {
    async fn send_patiently(self: &Arc<Self>, from: &WorkflowId, task: ActivityTask) {
        let activity_id = task.activity_id.clone();
        let mut wait = RETRY_FIRST;
        loop {
            match self.deliver_outbound(from, &task).await {
                Ok(()) => {
                    self.push(from, Input::SignalArrived { activity_id, done: None });
                    return;
                }
                Err(EngineError::Store(error)) => {
                    tracing::warn!(workflow_id = %from, %error, "signal not delivered yet");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY_MAX);
                }
                // Stays announced: sent again by a process that can deliver it.
                Err(
                    error @ (EngineError::Stopping
                    | EngineError::Unavailable(_)
                    | EngineError::UnknownType(_)
                    | EngineError::SetAside { .. }),
                ) => {
                    tracing::warn!(workflow_id = %from, %error, "signal is kept for the next start");
                    return;
                }
            }
        }
    }

    /// Tries once to send an announced signal, and records that it has arrived. A signal that is not announced any more
    /// has arrived. `false` when this process cannot record it.
    /// Errors: as [`harness_ports::Engine::deliver`], of the other workflow.
    pub async fn send_signal(
        self: &Arc<Self>,
        from: &WorkflowId,
        activity_id: ActivityId,
    ) -> Result<bool, EngineError> {
        if let Some(task) = self.announced(from, &activity_id).await? {
            self.deliver_outbound(from, &task).await?;
            return Ok(self.ask(from, |done| Input::SignalArrived { activity_id, done: Some(done) }).await);
        }
        Ok(true)
    }

    async fn deliver_outbound(
        self: &Arc<Self>,
        from: &WorkflowId,
        task: &ActivityTask,
    ) -> Result<(), EngineError> {
        let outbound = match serde_json::from_value::<OutboundSignal>(task.input.clone()) {
            Ok(outbound) => outbound,
            Err(error) => {
                let reason = format!("a stored signal cannot be read: {error}");
                return Err(EngineError::SetAside { workflow_id: from.clone(), reason });
            }
        };
        let OutboundSignal { workflow_id: to, start, signal } = outbound;
        let name = signal.name.clone();
        let delivery = Delivery { workflow_id: to.clone(), start, signal: Some(signal), blocks: Vec::new() };
        let receipt = self.deliver(delivery).await?;
        if !matches!(receipt, Delivered::Accepted { .. } | Delivered::Duplicate { .. }) {
            tracing::warn!(workflow_id = %from, %to, signal = name, ?receipt, "signal not taken");
        }
        Ok(())
    }
}
