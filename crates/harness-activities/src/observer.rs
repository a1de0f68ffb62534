//! Who watches activities: logs and the transcript of the demo.

use std::{fmt, sync::Arc, time::Duration};

use harness_agent::INVOKE_TOOL;
use harness_model::{ActivityId, TraceParent, WorkflowId};
use harness_ports::{ActivityContext, ActivityFailure, ActivityTask, Clock};
use serde_json::Value;

/// Is told when an activity begins and ends. Called in the activity's own time: implementations return at once.
pub trait ActivityObserver: Send + Sync {
    /// An activity begins.
    fn started(&self, run: &ActivityRun);

    /// It has ended: with its recorded result, with a failure, or as canceled when it was abandoned.
    fn ended(&self, run: &ActivityRun, duration: Duration, outcome: Result<&Value, &ActivityFailure>);
}

/// One execution of an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityRun {
    /// The workflow that asked; for tasks the same text as the task's id.
    pub workflow_id: WorkflowId,
    /// The activity.
    pub activity_id: ActivityId,
    /// This execution of it.
    pub run_id: String,
    /// Versioned name.
    pub name: String,
    /// Registry name of the tool, when it is a tool call.
    pub tool: Option<String>,
    /// Where in a trace it was asked for.
    pub trace: Option<TraceParent>,
}

impl ActivityRun {
    pub(crate) fn of(task: &ActivityTask, context: &ActivityContext) -> Self {
        let tool = task.input.get("name").and_then(Value::as_str).filter(|_| task.name == INVOKE_TOOL);
        Self {
            workflow_id: context.workflow_id.clone(),
            activity_id: task.activity_id.clone(),
            run_id: context.run_id.clone(),
            name: task.name.clone(),
            tool: tool.map(str::to_owned),
            trace: task.trace.clone(),
        }
    }
}

/// Tells the observer about the end of an activity exactly once, also of one that was dropped.
pub(crate) struct Observed {
    observer: Option<Arc<dyn ActivityObserver>>,
    clock: Arc<dyn Clock>,
    started_at: harness_model::Timestamp,
    run: ActivityRun,
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Observed {
    pub(crate) fn begin(
        observer: Option<Arc<dyn ActivityObserver>>,
        clock: Arc<dyn Clock>,
        run: ActivityRun,
    ) -> Self {
        if let Some(observer) = &observer {
            observer.started(&run);
        }
        Self { observer, started_at: clock.now(), clock, run }
    }

    pub(crate) fn end(mut self, result: &Result<Value, ActivityFailure>) {
        self.tell(result.as_ref());
    }

    fn tell(&mut self, outcome: Result<&Value, &ActivityFailure>) {
        if let Some(observer) = self.observer.take() {
            observer.ended(&self.run, self.clock.now().since(self.started_at), outcome);
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.tell(Err(&ActivityFailure::canceled()));
    }
}
