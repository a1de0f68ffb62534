//! Runs activities: a place in the queue, a time limit, a way to stop, and an end that always comes.

use std::{io, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use harness_model::{ActivityId, WorkflowId, codes, limits};
use harness_ports::{ActivityContext, ActivityFailure, ActivityTask, FailureKind, OnCrash};
use serde_json::Value;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{context::EngineContext, input::Input};

type Outcome = Result<Value, ActivityFailure>;

/// Starts an announced activity. Cancelling the token stops it; its end is then not reported.
pub(crate) fn start(
    context: &Arc<EngineContext>,
    workflow_id: &WorkflowId,
    task: ActivityTask,
) -> CancellationToken {
    let cancel = context.halt.child_token();
    let run = Run { context: Arc::clone(context), workflow_id: workflow_id.clone(), cancel: cancel.clone() };
    context.work.spawn(run.run(task));
    cancel
}

/// The end of an activity that a dead process may or may not have completed.
pub(crate) fn outcome_unknown(task: &ActivityTask) -> ActivityFailure {
    ActivityFailure {
        code: codes::HARNESS_ERROR,
        message: format!("the process ended while {} ran; nobody knows whether it took effect", task.name),
        kind: FailureKind::OutcomeUnknown,
    }
}

struct Run {
    context: Arc<EngineContext>,
    workflow_id: WorkflowId,
    cancel: CancellationToken,
}

impl Run {
    async fn run(self, task: ActivityTask) {
        let activity_id = task.activity_id.clone();
        let Some(place) = self.place(task.options.on_crash).await else { return };
        let outcome = self.execute(task, &activity_id).await;
        drop(place);
        if let Some(outcome) = outcome
            && !self.cancel.is_cancelled()
        {
            self.context.push(&self.workflow_id, Input::ActivityEnded { activity_id, outcome });
        }
    }

    /// Waits for a place; `None` when the activity is not to begin any more. An activity that may be repeated is left
    /// to the next process when this one is about to stop.
    async fn place(&self, on_crash: OnCrash) -> Option<OwnedSemaphorePermit> {
        let places = Arc::clone(&self.context.activity_places);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            () = self.context.work.stop_token().cancelled(), if on_crash == OnCrash::Rerun => None,
            place = places.acquire_owned() => place.ok(),
        }
    }

    /// Runs the activity to its end; `None` when it was cut off.
    async fn execute(&self, task: ActivityTask, activity_id: &ActivityId) -> Option<Outcome> {
        let stop = self.cancel.child_token();
        let context = ActivityContext {
            workflow_id: self.workflow_id.clone(),
            run_id: self.context.ids.fresh(),
            started_at: self.context.clock.now(),
            cancel: stop.clone(),
        };
        let (name, limit) = (task.name.clone(), task.options.start_to_close);
        let host = &self.context.activities;
        let attempt = AssertUnwindSafe(async move { host.run(task, context).await }).catch_unwind();
        let ended = tokio::select! {
            biased;
            ended = timeout(limit, attempt) => ended,
            () = self.cut_off() => return None,
        };
        match ended {
            Ok(Ok(outcome)) => Some(outcome.and_then(|result| bounded(result, &name))),
            Ok(Err(_panic)) => {
                // The panic hook has written the reason.
                tracing::error!(workflow_id = %self.workflow_id, %activity_id, name, "activity panicked");
                let message = format!("{name} failed unexpectedly; the log has the reason");
                Some(Err(ActivityFailure::fatal(codes::HARNESS_ERROR, message)))
            }
            Err(_elapsed) => {
                stop.cancel();
                let message = format!("{name} did not end within {} s", limit.as_secs_f64());
                let kind = FailureKind::TimedOut;
                Some(Err(ActivityFailure { code: codes::HARNESS_ERROR, message, kind }))
            }
        }
    }

    /// Ends when the activity was asked to stop and has had its time to do so.
    async fn cut_off(&self) {
        self.cancel.cancelled().await;
        tokio::select! {
            biased;
            () = self.context.abandon.cancelled() => {}
            () = sleep(self.context.options.cancel_grace) => {}
        }
    }
}

/// Histories stay small: content belongs into the store, results refer to it.
fn bounded(result: Value, name: &str) -> Outcome {
    let mut budget = Budget(limits::HISTORY_PAYLOAD_BYTES_MAX);
    if serde_json::to_writer(&mut budget, &result).is_ok() {
        return Ok(result);
    }
    let message = format!("{name} returned more than {} bytes", limits::HISTORY_PAYLOAD_BYTES_MAX);
    Err(ActivityFailure::fatal(codes::HARNESS_ERROR, message))
}

/// Bytes that may still be written; the bytes themselves are not kept.
struct Budget(usize);

impl io::Write for Budget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
