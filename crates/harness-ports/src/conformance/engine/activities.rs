//! The activities of the suite, and what they saw.

use std::{collections::BTreeSet, future::pending, sync::Arc};

use futures::future::BoxFuture;
use harness_model::{ActivityId, Timestamp, TraceParent, WorkflowId, codes, limits};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::stage::in_time;
use crate::{ActivityContext, ActivityFailure, ActivityHost, ActivityTask};

/// Returns its input.
pub(super) const ECHO: &str = "echo.v1";
/// Fails for good.
pub(super) const FAIL: &str = "fail.v1";
/// Panics.
pub(super) const PANIC: &str = "panic.v1";
/// Returns more than a history may hold.
pub(super) const FLOOD: &str = "flood.v1";
/// Returns its input once the gate of its id is open; stops when asked to.
pub(super) const GATE: &str = "gate.v1";
/// Never ends and does not listen.
pub(super) const DEAF: &str = "deaf.v1";

/// One execution of an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) workflow_id: WorkflowId,
    pub(super) activity_id: ActivityId,
    pub(super) run_id: String,
    pub(super) started_at: Timestamp,
    pub(super) trace: Option<TraceParent>,
}

/// What happened so far, in all lives.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) started: Vec<Execution>,
    /// Run ids of executions that were asked to stop and did.
    pub(super) stopped: Vec<String>,
    open_gates: BTreeSet<String>,
}

impl Seen {
    /// Executions of an activity, in order.
    pub(super) fn of(&self, activity_id: &str) -> Vec<&Execution> {
        self.started.iter().filter(|run| run.activity_id.as_str() == activity_id).collect()
    }
}

/// The activity host of the suite. Outlives the engines it serves.
#[derive(Debug)]
pub(super) struct SuiteActivities {
    seen: watch::Sender<Seen>,
}

impl SuiteActivities {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { seen: watch::Sender::new(Seen::default()) })
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Lets the activity of this id end, now and in later executions.
    pub(super) fn open_gate(&self, activity_id: &str) {
        self.seen.send_modify(|seen| {
            seen.open_gates.insert(activity_id.to_owned());
        });
    }

    /// Waits until something holds of what was seen.
    pub(super) async fn wait(&self, what: &str, holds: impl FnMut(&Seen) -> bool) {
        let mut changes = self.seen.subscribe();
        let seen = in_time(what, changes.wait_for(holds)).await;
        assert!(seen.is_ok(), "the host is gone while waiting until {what}");
    }

    /// Waits until an activity was started this many times.
    pub(super) async fn wait_started(&self, activity_id: &str, times: usize) {
        self.wait(&format!("{activity_id} started"), |seen| seen.of(activity_id).len() >= times).await;
    }
}

impl ActivityHost for SuiteActivities {
    fn run(
        &self,
        task: ActivityTask,
        context: ActivityContext,
    ) -> BoxFuture<'static, Result<Value, ActivityFailure>> {
        let ActivityContext { workflow_id, run_id, started_at, cancel } = context;
        let (activity_id, trace) = (task.activity_id.clone(), task.trace.clone());
        self.seen.send_modify(|seen| {
            let run_id = run_id.clone();
            seen.started.push(Execution { workflow_id, activity_id, run_id, started_at, trace });
        });
        let (seen, mut changes) = (self.seen.clone(), self.seen.subscribe());
        Box::pin(async move {
            match task.name.as_str() {
                ECHO => Ok(task.input),
                PANIC => panic!("the activity was asked to"),
                FLOOD => Ok(json!("x".repeat(limits::HISTORY_PAYLOAD_BYTES_MAX))),
                DEAF => pending().await,
                GATE => {
                    let gate = task.activity_id.as_str();
                    let open = changes.wait_for(|seen| seen.open_gates.contains(gate));
                    match cancel.run_until_cancelled(open).await {
                        Some(_open) => Ok(task.input),
                        None => {
                            seen.send_modify(|seen| seen.stopped.push(run_id));
                            Err(ActivityFailure::canceled())
                        }
                    }
                }
                _ => Err(ActivityFailure::fatal(codes::HARNESS_ERROR, "it fails")),
            }
        })
    }
}
