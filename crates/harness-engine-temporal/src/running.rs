//! The executions of this process, so that one that is no longer wanted hears of it at once when the news is here already.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use harness_model::{ActivityId, WorkflowId};
use tokio_util::sync::CancellationToken;

type Key = (WorkflowId, ActivityId);

/// Tokens of the executions of this process.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<HashMap<Key, CancellationToken>>);

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists an execution until the result is dropped.
    pub(crate) fn list(
        self: &Arc<Self>,
        workflow_id: &WorkflowId,
        activity_id: &ActivityId,
        cancel: CancellationToken,
    ) -> Listed {
        let key = (workflow_id.clone(), activity_id.clone());
        self.lock().insert(key.clone(), cancel);
        Listed { running: Arc::clone(self), key }
    }

    /// Stops an execution, if it is here.
    pub(crate) fn stop(&self, workflow_id: &WorkflowId, activity_id: &ActivityId) {
        if let Some(cancel) = self.lock().remove(&(workflow_id.clone(), activity_id.clone())) {
            cancel.cancel();
        }
    }
}

/// Keeps an execution listed.
#[derive(Debug)]
pub(crate) struct Listed {
    running: Arc<Running>,
    key: Key,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.running.lock().remove(&self.key);
    }
}
