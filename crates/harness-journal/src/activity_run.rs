//! One execution of an activity: a time limit, a way to stop, and an end that always comes.

use std::{io, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use harness_model::{codes, limits};
use harness_ports::{ActivityContext, ActivityFailure, ActivityHost, ActivityTask, FailureKind};
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// When an execution is dropped although it has not ended.
#[derive(Clone, Debug)]
pub struct Cut {
    /// After the context's token was cancelled: how long the activity may take to stop.
    pub grace: Duration,
    /// Ends the grace early.
    pub abandon: CancellationToken,
}

/// Runs an activity to its end; `None` when it was cut off. A panic, a result that is too large for a history and time
/// that ran out are failures like others.
pub fn run_activity(
    activities: &Arc<dyn ActivityHost>,
    task: ActivityTask,
    context: ActivityContext,
    cut: Cut,
) -> BoxFuture<'static, Option<Result<Value, ActivityFailure>>> {
    let cancel = context.cancel.clone();
    let stop = cancel.child_token();
    let context = ActivityContext { cancel: stop.clone(), ..context };
    let (workflow_id, activity_id) = (context.workflow_id.clone(), task.activity_id.clone());
    let (name, limit) = (task.name.clone(), task.options.start_to_close);
    let host = Arc::clone(activities);
    Box::pin(async move {
        let attempt = AssertUnwindSafe(async move { host.run(task, context).await }).catch_unwind();
        let ended = tokio::select! {
            biased;
            ended = timeout(limit, attempt) => ended,
            () = cut_off(&cancel, &cut) => return None,
        };
        match ended {
            Ok(Ok(outcome)) => Some(outcome.and_then(|result| bounded(result, &name))),
            Ok(Err(_panic)) => {
                // The panic hook has written the reason.
                tracing::error!(%workflow_id, %activity_id, name, "activity panicked");
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
    })
}

/// Ends when the activity was asked to stop and has had its time to do so.
async fn cut_off(cancel: &CancellationToken, cut: &Cut) {
    cancel.cancelled().await;
    tokio::select! {
        biased;
        () = cut.abandon.cancelled() => {}
        () = sleep(cut.grace) => {}
    }
}

/// The end of an activity of which nobody knows whether it took effect.
pub(crate) fn outcome_unknown(name: &str) -> ActivityFailure {
    ActivityFailure {
        code: codes::HARNESS_ERROR,
        message: format!("the process ended while {name} ran; nobody knows whether it took effect"),
        kind: FailureKind::OutcomeUnknown,
    }
}

/// Histories stay small: content belongs into the store, results refer to it.
fn bounded(result: Value, name: &str) -> Result<Value, ActivityFailure> {
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
