//! The workflows that this process came across and cannot host.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use harness_model::WorkflowId;

/// More are not remembered.
const ASIDES_MAX: usize = 1_000;

/// Their ids, up to a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asides(Arc<Mutex<BTreeSet<WorkflowId>>>);

impl Asides {
    pub(crate) fn add(&self, workflow_id: &WorkflowId) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() < ASIDES_MAX {
            ids.insert(workflow_id.clone());
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
