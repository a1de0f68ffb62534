//! Who runs the activities and watches the clock.

use std::sync::Arc;

use harness_model::{ActivityId, Timestamp, WorkflowId};
use harness_ports::{ActivityTask, Write};
use tokio_util::sync::CancellationToken;

use crate::Host;

/// Sees to it that what is durable also happens: activities run, timers go off.
///
/// The host calls it from its actors; calls for one workflow come one at a time. None of them may block.
pub trait Driver: Send + Sync {
    /// Whether other processes may change the workflows of the store. If so, a conflict means that one of them was
    /// faster: the workflow is read again and the inputs are decided anew.
    fn shares_store(&self) -> bool;

    /// Writes that become durable together with a batch.
    fn note(&self, workflow_id: &WorkflowId, changes: &Changes, writes: &mut Vec<Write>);

    /// A batch is durable. Activities it starts come through [`Driver::begin`] as well.
    fn committed(&self, host: &Arc<Host>, workflow_id: &WorkflowId, changes: &Changes);

    /// Takes on an activity whose announcement is durable. The token stops an activity that runs in this process;
    /// `None` when the driver keeps track of it itself.
    fn begin(
        &self,
        host: &Arc<Host>,
        workflow_id: &WorkflowId,
        task: ActivityTask,
    ) -> Option<CancellationToken>;

    /// What to think of an activity that was read as announced from the store and that this process did not begin.
    fn found(&self, task: &ActivityTask) -> Found;
}

/// Where an announced activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nowhere: it is to be begun.
    ToBegin,
    /// It may have run in a process that is gone, and must not be repeated.
    Lost,
    /// Somebody else sees to it.
    Elsewhere,
}

/// What a batch changes for a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Position in the journal after the batch.
    pub seq: u64,
    /// Whether activities are started.
    pub starts: bool,
    /// Activities that are no longer wanted, or have ended.
    pub stopped: Vec<ActivityId>,
    /// Whether timers are started or removed.
    pub timers: bool,
    /// When the first timer of the batch is due.
    pub first_due: Option<Timestamp>,
    /// Whether the workflow has ended with the batch, or before.
    pub closed: bool,
    /// Whether a delivery is among the causes: whoever drives the workflow does not know of the batch.
    pub unasked: bool,
}
