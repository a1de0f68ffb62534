//! What is in memory for one workflow.

use std::collections::HashMap;

use harness_model::ActivityId;
use tokio_util::sync::CancellationToken;

use crate::instance::Instance;

/// The memory of one workflow: its state, unless it has to be read from the store first, and its running activities.
#[derive(Default)]
pub(crate) struct Hosted {
    pub(crate) instance: Option<Box<Instance>>,
    /// Activities of this process whose end is not recorded yet, with the tokens that stop them.
    pub(crate) running: HashMap<ActivityId, CancellationToken>,
}

/// What may become of a workflow's memory while nothing is queued for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Activities run: the state stays.
    Busy,
    /// It waits for something from outside: the state may go at any time.
    Parked,
    /// There is nothing worth keeping.
    Nothing,
}

impl Hosted {
    pub(crate) fn rest(&self) -> Rest {
        if !self.running.is_empty() {
            return Rest::Busy;
        }
        match &self.instance {
            Some(instance) if instance.is_open() => Rest::Parked,
            Some(_) | None => Rest::Nothing,
        }
    }
}
