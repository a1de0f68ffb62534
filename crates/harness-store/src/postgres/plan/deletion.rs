//! Which tasks are deleted.

use harness_model::TaskId;
use harness_ports::DeleteWhen;

use super::Planning;
use crate::encode::is_terminal_number;

/// A task that goes.
#[derive(Debug)]
pub(in crate::postgres) struct Deletion<'a> {
    pub(in crate::postgres) task_id: &'a TaskId,
    pub(in crate::postgres) workflow: Option<i64>,
    pub(in crate::postgres) task: Option<i64>,
    /// Whether it has a record.
    pub(in crate::postgres) recorded: bool,
    /// Whether it stays if it has announced activities.
    pub(in crate::postgres) only_idle: bool,
}

impl<'a> Planning<'a> {
    /// Plans to delete everything of a task, if it may be deleted. A batch that does so changes nothing else of it.
    pub(super) fn delete(&mut self, task_id: &'a TaskId, when: DeleteWhen) {
        let id = task_id.as_str();
        let (workflow, task) = (self.found.workflows.get(id), self.found.tasks.get(id));
        let indexed = task.and_then(|task| task.indexed.as_ref());
        let only_idle = match when {
            DeleteWhen::Always => false,
            DeleteWhen::EndedBefore(before) => {
                let before = before.as_millis();
                let ended = indexed.is_some_and(|i| is_terminal_number(i.state) && i.status_at < before);
                if !ended || workflow.is_some_and(|workflow| !workflow.closed) {
                    return;
                }
                true
            }
        };
        let recorded = indexed.is_some();
        let (workflow, task) = (workflow.map(|workflow| workflow.row), task.map(|task| task.row));
        self.plan.deletions.push(Deletion { task_id, workflow, task, recorded, only_idle });
    }
}
