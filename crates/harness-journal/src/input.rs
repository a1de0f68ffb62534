//! Everything that can be asked of the actor of a workflow.

use harness_model::ActivityId;
use harness_ports::{ActivityFailure, Delivered, Delivery, EngineError};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Where the answer to a delivery goes.
pub(crate) type Reply = oneshot::Sender<Result<Delivered, EngineError>>;

/// Where the news goes that an input is settled. Dropped when it cannot be.
pub(crate) type Done = oneshot::Sender<()>;

/// One thing that waits in the inbox of a workflow.
#[derive(Debug)]
pub(crate) enum Input {
    /// A signal from outside, or a start.
    Deliver(Box<PendingDelivery>),
    /// An activity ended.
    ActivityEnded { activity_id: ActivityId, outcome: Result<Value, ActivityFailure>, done: Option<Done> },
    /// An execution of an activity went away without an end.
    ActivityLost { activity_id: ActivityId, done: Done },
    /// A signal to another workflow has arrived there.
    SignalArrived { activity_id: ActivityId, done: Option<Done> },
    /// Some timers of the workflow are due. The answer says whether the store has changed.
    TimersDue(oneshot::Sender<bool>),
    /// Load the workflow, which brings back its announced activities.
    Recover(Done),
}

/// A delivery with the caller who waits for its receipt.
#[derive(Debug)]
pub(crate) struct PendingDelivery {
    pub(crate) delivery: Delivery,
    pub(crate) reply: Reply,
    /// The place in the inbox, free again once the delivery is answered.
    pub(crate) _place: OwnedSemaphorePermit,
}
