//! The activities of the tests, and what they saw.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::BoxFuture;
use harness_model::codes;
use harness_ports::{ActivityContext, ActivityFailure, ActivityHost, ActivityTask};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::in_time;

/// Ends at once.
pub(crate) const ECHO: &str = "echo.v1";
/// Ends at once with five thousand bytes.
pub(crate) const PAGE: &str = "invoke_tool.v1";
/// Ends when the gate of its id is open.
pub(crate) const GATE: &str = "gate.v1";
/// Returns its input; one of those that are over in no time.
pub(crate) const QUICK: &str = "intake.v1";

/// What happened in all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Ids of activities, one for each execution.
    pub(crate) begun: Vec<String>,
    /// Ids of those that were asked to stop.
    pub(crate) stopped: Vec<String>,
    open: BTreeSet<String>,
}

impl Seen {
    pub(crate) fn times(&self, id: &str) -> usize {
        self.begun.iter().filter(|begun| *begun == id).count()
    }
}

/// Runs the activities of every process of a test.
pub(crate) struct Doings {
    seen: watch::Sender<Seen>,
}

impl Doings {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { seen: watch::Sender::new(Seen::default()) })
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    pub(crate) fn open(&self, id: &str) {
        self.seen.send_modify(|seen| {
            seen.open.insert(id.to_owned());
        });
    }

    pub(crate) async fn wait(&self, what: &str, holds: impl FnMut(&Seen) -> bool) {
        let mut changes = self.seen.subscribe();
        in_time(what, changes.wait_for(holds)).await.unwrap();
    }

    pub(crate) async fn wait_begun(&self, id: &str, times: usize) {
        self.wait(&format!("{id} begun {times} times"), |seen| seen.times(id) >= times).await;
    }
}

impl ActivityHost for Doings {
    fn run(
        &self,
        task: ActivityTask,
        context: ActivityContext,
    ) -> BoxFuture<'static, Result<Value, ActivityFailure>> {
        let id = task.activity_id.to_string();
        self.seen.send_modify(|seen| seen.begun.push(id.clone()));
        let (seen, mut changes) = (self.seen.clone(), self.seen.subscribe());
        Box::pin(async move {
            match task.name.as_str() {
                ECHO | QUICK => Ok(task.input),
                PAGE => Ok(json!("x".repeat(5_000))),
                GATE => {
                    let open = changes.wait_for(|seen| seen.open.contains(&id));
                    if context.cancel.run_until_cancelled(open).await.is_some() {
                        return Ok(task.input);
                    }
                    seen.send_modify(|seen| seen.stopped.push(id.clone()));
                    Err(ActivityFailure::canceled())
                }
                _ => Err(ActivityFailure::fatal(codes::HARNESS_ERROR, "nobody knows this activity")),
            }
        })
    }
}
