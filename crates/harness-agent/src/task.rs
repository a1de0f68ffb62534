//! The task workflow: one A2A task as a pure state machine.
//!
//! [`state`] holds what is remembered, [`apply`] decides what an event means. Each kind of event has a file of its own
//! under `task/`; everything that happens to a task in any phase is in the table of `docs/task-states.md`, and each cell
//! of that table is a test.

mod activity_failed;
mod apply;
mod cancel;
mod facts;
mod intake_done;
mod message_accepted;
mod model_answered;
mod own_change;
mod publishing;
mod started;
mod state;
#[cfg(test)]
mod tests;
mod tool_ended;
mod turn;

use std::sync::Arc;

use harness_model::{StartTask, TASK_WORKFLOW};
use harness_ports::{RestoreError, Workflow, WorkflowDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::TaskSettings;
use apply::TaskWorkflow;

pub use facts::TaskFacts;

/// Makes task workflows.
#[derive(Clone, Debug)]
pub struct TaskDefinition {
    settings: Arc<TaskSettings>,
}

/// What is recorded at the start of a task: what the server said, and the settings of that day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskInput {
    /// What the server said.
    pub start: StartTask,
    /// What governs the task from then on.
    pub settings: TaskSettings,
}

impl TaskDefinition {
    /// Tasks that start from now on have these settings.
    pub fn new(settings: TaskSettings) -> Self {
        Self { settings: Arc::new(settings) }
    }
}

impl WorkflowDefinition for TaskDefinition {
    fn workflow_type(&self) -> &'static str {
        TASK_WORKFLOW
    }

    fn prepare_start(&self, input: Value) -> Value {
        serde_json::json!({"start": input, "settings": &*self.settings})
    }

    fn create(&self) -> Box<dyn Workflow> {
        Box::new(TaskWorkflow::new())
    }

    fn restore(&self, snapshot: &[u8]) -> Result<Box<dyn Workflow>, RestoreError> {
        let workflow = TaskWorkflow::restore(snapshot)
            .map_err(|reason| RestoreError { workflow_type: TASK_WORKFLOW.to_owned(), reason })?;
        Ok(Box::new(workflow))
    }
}
