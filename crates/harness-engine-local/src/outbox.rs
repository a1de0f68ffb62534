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

use crate::{context::EngineContext, input::Input};

/// Name of the engine's own activity. Workflows cannot use it: the engine never hands it to the activity host.
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
    }
}

/// Whether an announced activity is a signal on its way.
pub(crate) fn is_outbound(task: &ActivityTask) -> bool {
    task.name == SIGNAL_ACTIVITY
}

/// Sends an announced signal. The token stops it.
pub(crate) fn send(context: &Arc<EngineContext>, from: &WorkflowId, task: ActivityTask) -> CancellationToken {
    let cancel = context.halt.child_token();
    // Whatever is left when the engine stops is sent after the restart.
    if !context.is_draining() {
        let (engine, from, stop) = (Arc::clone(context), from.clone(), cancel.clone());
        context.work.spawn(async move {
            let _stopped = stop.run_until_cancelled(deliver(&engine, &from, task)).await;
        });
    }
    cancel
}

async fn deliver(context: &Arc<EngineContext>, from: &WorkflowId, task: ActivityTask) {
    let ActivityTask { activity_id, input, .. } = task;
    let outbound = match serde_json::from_value::<OutboundSignal>(input) {
        Ok(outbound) => outbound,
        Err(error) => {
            tracing::error!(workflow_id = %from, %activity_id, %error, "stored signal cannot be read");
            return;
        }
    };
    let OutboundSignal { workflow_id: to, start, signal } = outbound;
    let mut wait = RETRY_FIRST;
    loop {
        let delivery = Delivery {
            workflow_id: to.clone(),
            start: start.clone(),
            signal: Some(signal.clone()),
            blocks: Vec::new(),
        };
        match context.deliver(delivery).await {
            Ok(receipt) => {
                if !matches!(receipt, Delivered::Accepted { .. } | Delivered::Duplicate { .. }) {
                    tracing::warn!(workflow_id = %from, %to, signal = signal.name, ?receipt, "signal not taken");
                }
                context.push(from, Input::SignalArrived(activity_id));
                return;
            }
            Err(EngineError::Store(error)) => {
                tracing::warn!(workflow_id = %from, %to, %error, "signal not delivered yet");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_MAX);
            }
            // Stays announced: sent again by a process that can deliver it.
            Err(
                error @ (EngineError::Stopping | EngineError::UnknownType(_) | EngineError::SetAside { .. }),
            ) => {
                tracing::warn!(workflow_id = %from, %to, %error, "signal is kept for the next start");
                return;
            }
        }
    }
}
