//! What an engine says about itself.

use harness_ports::{RecordKind, StoreError};

use crate::TemporalEngine;

/// Notes are counted up to here.
const NOTES_MAX: usize = 1_000;

/// What a process knows about its own part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Workflow tasks that this process failed since it started. Anything but 0 wants to be looked into: a task may be
    /// unable to go on.
    pub workflow_task_failures: u64,
    /// Workflows that this process came across and cannot host; up to 1,000 of them are counted.
    pub set_aside: usize,
    /// Wake-ups of all processes that are not sent yet; up to 1,000 of them are counted.
    pub pending_wakes: usize,
    /// Wake-ups in a row that this process could not send. Anything but 0 means that Temporal does not answer.
    pub failed_wakes: u64,
    /// What became of the worker of this process.
    pub worker: WorkerState,
    /// Workflows of the journal that have state in memory.
    pub workflows_in_memory: usize,
}

/// Whether a process works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It is not to.
    None,
    /// It does.
    Running,
    /// It has stopped, because it was asked to or because it failed.
    Ended,
}

impl TemporalEngine {
    /// How this process does. Errors: the store's.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let notes = self.host.store.records_page(RecordKind::PendingWake, None, NOTES_MAX).await?;
        Ok(Health {
            workflow_task_failures: self.failures.count(),
            set_aside: self.asides.count(),
            pending_wakes: notes.len(),
            failed_wakes: self.wakes.failed_in_a_row(),
            worker: match &self.worker {
                None => WorkerState::None,
                Some(worker) if worker.is_running() => WorkerState::Running,
                Some(_) => WorkerState::Ended,
            },
            workflows_in_memory: self.host.workflows_in_memory(),
        })
    }
}
