//! Activities in the log, at level DEBUG: a line when one begins and a line when it has ended.

use std::time::Duration;

use harness_activities::{ActivityObserver, ActivityRun};
use harness_model::TraceParent;
use harness_ports::ActivityFailure;
use serde_json::Value;

/// Writes about every activity. Inputs and results are content and stay out of the log.
#[derive(Debug)]
pub(crate) struct ActivityLog;

impl ActivityObserver for ActivityLog {
    fn started(&self, run: &ActivityRun) {
        tracing::debug!(
            task_id = %run.workflow_id,
            activity_id = %run.activity_id,
            run_id = run.run_id,
            activity = run.name,
            tool = run.tool,
            trace_id = run.trace.as_ref().map(TraceParent::trace_id),
            "activity begins"
        );
    }

    fn ended(&self, run: &ActivityRun, duration: Duration, outcome: Result<&Value, &ActivityFailure>) {
        let outcome = outcome.map_or_else(|failure| failure.code.to_string(), |_| "completed".to_owned());
        tracing::debug!(
            task_id = %run.workflow_id,
            activity_id = %run.activity_id,
            run_id = run.run_id,
            activity = run.name,
            tool = run.tool,
            trace_id = run.trace.as_ref().map(TraceParent::trace_id),
            duration_ms = millis(duration),
            outcome,
            "activity ended"
        );
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
