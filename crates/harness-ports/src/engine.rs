//! The engine port: hosts workflows durably.

use futures::future::BoxFuture;
use harness_model::{ErrorCode, TraceParent, WorkflowId, codes};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Block, StoreError};

/// A named message to a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Versioned name, such as `message.v1`.
    pub name: String,
    /// References and small facts.
    pub payload: Value,
    /// Signals with an equal key reach the workflow once, ever. `None`: never deduplicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Where in a trace it was asked for. Workflows do not look at it; what it causes carries it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// How to start a workflow that does not exist yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartWorkflow {
    /// Versioned type, such as `task.v1`.
    pub workflow_type: String,
    /// References and small facts.
    pub input: Value,
}

/// A signal on its way to a workflow, possibly one that is to be started with it.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// Starts the workflow first when it does not exist; ignored when it does.
    pub start: Option<StartWorkflow>,
    /// What to tell it. `None` only starts; an existing workflow is then a `Duplicate`.
    pub signal: Option<Signal>,
    /// Blocks that the signal or the start refer to; kept in the same transaction.
    pub blocks: Vec<Block>,
}

/// What became of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Recorded, durable, and on its way. `cursor` is the newest log entry from before it; `None` when there was none.
    Accepted {
        /// Where a subscriber that wants only the consequences starts reading.
        cursor: Option<u64>,
    },
    /// A signal with this key was accepted earlier; nothing happened. The cursor is that of the first time.
    Duplicate {
        /// As above, of the first time.
        cursor: Option<u64>,
    },
    /// The workflow has ended; nothing happened.
    Closed,
    /// There is no such workflow and the delivery does not start one.
    NotFound,
    /// The workflow does not want it; nothing happened.
    Refused {
        /// Why, for the sender.
        reason: String,
    },
}

/// What an engine promises beyond the contract, and what it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Publishing is atomic with the event that caused it; otherwise it follows soon and exactly once.
    pub atomic_publish: bool,
    /// Several processes may host workflows of one store at once.
    pub many_workers: bool,
    /// An announced activity that was not begun waits for a process that can begin it, also one that must not be
    /// repeated. Otherwise it counts as begun once the process that announced it is gone, and a drain begins it.
    pub unbegun_waits: bool,
    /// What a dead process left is known before the next signal is recorded. Otherwise it follows, as soon as it is certain.
    pub losses_first: bool,
}

/// Hosts [`crate::Workflow`]s.
///
/// Contract:
/// - A delivery that returns `Accepted` survives the loss of the process at any later moment.
/// - Events reach a workflow one at a time, in the order of the journal; commands of an event take effect only after
///   the event is durable.
/// - An activity's end is delivered at most once. An activity that was announced and not recorded as ended is run again
///   or reported unknown after a restart, as its options say.
/// - Timers fire once, never early, and soon after a restart when they were missed.
/// - A workflow whose `apply` fails is set aside, logged and reported; it never blocks another one.
pub trait Engine: Send + Sync {
    /// Delivers a signal, starting the workflow if asked to. Concurrent calls with one workflow id are ordered.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Delivered, EngineError>>;

    /// What this engine promises.
    fn capabilities(&self) -> Capabilities;

    /// What the engine needs beside the store and has not reached lately, for the operator; `None` when all is well, and
    /// of engines that need nothing. Deliveries are taken all the same: their consequences wait.
    fn outage(&self) -> Option<String> {
        None
    }

    /// To be called after everything of a workflow was deleted from the store: ends what drives it elsewhere, which would
    /// find nothing and end by itself, only later. Nothing to end is fine.
    /// Errors: what drives it is still there; the call may be repeated.
    fn forget<'a>(&'a self, _workflow_id: &'a WorkflowId) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Why an engine could not do something. Nothing happened, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store failed.
    #[error("the engine's store failed")]
    Store(#[from] StoreError),
    /// The engine is stopping; try again after the restart.
    #[error("the engine is stopping; try again in a moment")]
    Stopping,
    /// What the engine needs beside the store does not answer, or refuses.
    #[error("the engine cannot do that now: {0}")]
    Unavailable(String),
    /// No workflow of this type is registered.
    #[error("no workflow type {0:?} is registered")]
    UnknownType(String),
    /// The workflow cannot go on: its history does not fit this build.
    #[error("workflow {workflow_id} is set aside: {reason}")]
    SetAside {
        /// Which one.
        workflow_id: WorkflowId,
        /// Why.
        reason: String,
    },
}

impl EngineError {
    /// The stable code for people and peers.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Stopping | Self::Unavailable(_) | Self::UnknownType(_) => codes::HARNESS_ERROR,
            Self::SetAside { .. } => codes::STATE_INVALID,
        }
    }
}
