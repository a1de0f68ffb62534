//! Limits of a host.

use std::time::Duration;

/// Limits of one host. Every queue and batch of it has its bound here.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Deliveries that wait for one workflow; further callers wait to get in. At least 1.
    pub inbox_capacity: usize,
    /// Inputs that are applied and committed together. At least 1.
    pub batch_inputs_max: usize,
    /// Parked workflows whose state stays in memory, to save a read when they are needed again.
    pub warm_workflows_max: usize,
    /// Events after the newest snapshot; at this many the host takes a snapshot although the workflow did not ask.
    pub snapshot_tail_max: u64,
    /// How long an activity may take to stop after it was cancelled, before it is dropped.
    pub cancel_grace: Duration,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            inbox_capacity: 256,
            batch_inputs_max: 64,
            warm_workflows_max: 256,
            snapshot_tail_max: 64,
            cancel_grace: Duration::from_secs(5),
        }
    }
}
