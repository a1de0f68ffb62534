//! What operators may know of a task's workflow: numbers, and nothing that was said.

use harness_model::TASK_WORKFLOW;
use harness_ports::{RestoreError, StoredWorkflow, Workflow};

use super::apply::TaskWorkflow;

/// Numbers about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFacts {
    /// Turns so far.
    pub turn: u32,
    /// Messages that are not read yet.
    pub mailbox: usize,
    /// The newest name of what it does: `waiting`, `intake`, `modeling`, `tools`, `ended`.
    pub phase: &'static str,
}

impl TaskFacts {
    /// The facts of a task as it is stored; `None` before its first event and for workflows of other types.
    /// Errors: the workflow cannot be read by this build.
    pub fn of(stored: &StoredWorkflow) -> Result<Option<Self>, RestoreError> {
        if stored.workflow_type != TASK_WORKFLOW {
            return Ok(None);
        }
        let unreadable = |reason| RestoreError { workflow_type: TASK_WORKFLOW.to_owned(), reason };
        let mut workflow = match &stored.snapshot {
            Some((_, snapshot)) => TaskWorkflow::restore(snapshot).map_err(unreadable)?,
            None => TaskWorkflow::new(),
        };
        for (_, event) in &stored.tail {
            workflow.apply(event).map_err(|illegal| unreadable(illegal.to_string()))?;
        }
        Ok(workflow.data.map(|data| Self {
            turn: data.turn,
            mailbox: data.mailbox.len(),
            phase: data.phase.name(),
        }))
    }
}
