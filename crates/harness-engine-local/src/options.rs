//! Limits of the engine.

use std::time::Duration;

use harness_journal::HostOptions;

/// Limits of one engine. Every queue, batch and wait of the engine has its bound here.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Activities that run at once, over all workflows; further ones wait in order of arrival. At least 1.
    pub activities_running_max: usize,
    /// Deliveries that wait for one workflow; further callers wait to get in. At least 1.
    pub inbox_capacity: usize,
    /// Inputs that are applied and committed together. At least 1.
    pub batch_inputs_max: usize,
    /// Parked workflows whose state stays in memory, to save a read when they are needed again.
    pub warm_workflows_max: usize,
    /// Events after the newest snapshot; at this many the engine takes a snapshot although the workflow did not ask.
    pub snapshot_tail_max: u64,
    /// How long an activity may take to stop after it was cancelled, before it is dropped.
    pub cancel_grace: Duration,
    /// How long activities that are cut off by the end of a drain may take to stop, before they are dropped.
    pub drain_cutoff: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            activities_running_max: 512,
            inbox_capacity: 256,
            batch_inputs_max: 64,
            warm_workflows_max: 256,
            snapshot_tail_max: 64,
            cancel_grace: Duration::from_secs(5),
            drain_cutoff: Duration::from_millis(500),
        }
    }
}

impl EngineOptions {
    /// The limits that concern the hosting of workflows.
    pub(crate) fn host(&self) -> HostOptions {
        HostOptions {
            inbox_capacity: self.inbox_capacity,
            batch_inputs_max: self.batch_inputs_max,
            warm_workflows_max: self.warm_workflows_max,
            snapshot_tail_max: self.snapshot_tail_max,
            cancel_grace: self.cancel_grace,
        }
    }
}
