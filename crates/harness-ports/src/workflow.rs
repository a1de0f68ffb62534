//! Workflows: pure state machines that an engine hosts.

use std::time::Duration;

use harness_model::{ActivityId, TimerId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ActivityFailure, ActivityTask, Publish, Signal, StartWorkflow};

/// One recorded event of a workflow. The engine gives it its time; replay gives it the same again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEvent {
    /// When the event was recorded.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Everything that can happen to a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum EventKind {
    /// First event of every history.
    #[serde(rename = "started.v1")]
    Started {
        /// Start input, as given to the engine.
        input: Value,
    },
    /// A signal arrived.
    #[serde(rename = "signaled.v1")]
    Signaled(Signal),
    /// An activity ended with a result.
    #[serde(rename = "activity_completed.v1")]
    ActivityCompleted {
        /// Which one.
        activity_id: ActivityId,
        /// References and small facts.
        result: Value,
    },
    /// An activity ended without a result.
    #[serde(rename = "activity_failed.v1")]
    ActivityFailed {
        /// Which one.
        activity_id: ActivityId,
        /// How.
        failure: ActivityFailure,
    },
    /// A timer went off.
    #[serde(rename = "timer_fired.v1")]
    TimerFired {
        /// Which one.
        timer_id: TimerId,
    },
}

/// Everything a workflow can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Run an activity.
    ScheduleActivity(ActivityTask),
    /// Ask a running activity to stop and never deliver its end. Unknown ids are ignored.
    CancelActivity(ActivityId),
    /// Send `TimerFired` after this long, counted from the time of the event.
    StartTimer {
        /// Unique among the workflow's running timers.
        timer_id: TimerId,
        /// How long.
        after: Duration,
    },
    /// Forget a timer. Unknown ids are ignored.
    CancelTimer(TimerId),
    /// Start another workflow with a first signal, or signal it when it exists. Delivered once, whatever crashes.
    SignalWorkflow {
        /// The other workflow.
        workflow_id: WorkflowId,
        /// Starts it first when it does not exist; `None`: a workflow that does not exist is not signalled.
        start: Option<StartWorkflow>,
        /// What to tell it. Without a dedupe key the engine gives it one.
        signal: Signal,
    },
    /// Append to the task's event log, its history and its record, all or nothing.
    Publish(Box<Publish>),
    /// A good moment to keep a snapshot: the state is small now.
    Checkpoint,
    /// The workflow has ended; later signals are answered with `Closed`.
    Close,
}

/// A pure state machine. The same events in the same order give the same commands and the same snapshot, always.
///
/// Implementations read no clock, draw no random number, await nothing and touch nothing outside of themselves.
pub trait Workflow: Send {
    /// Takes one event. Events that no longer matter (an activity that was cancelled, anything after the end) are
    /// accepted and change nothing; `IllegalEvent` is for histories that no build of this workflow can have made.
    fn apply(&mut self, event: &HistoryEvent) -> Result<Vec<Command>, IllegalEvent>;

    /// Whether a signal would be accepted now; asked before it is recorded.
    fn admits(&self, signal: &Signal) -> Admission;

    /// The whole state, in a versioned form that [`WorkflowDefinition::restore`] reads.
    fn snapshot(&self) -> Vec<u8>;
}

/// Makes workflows of one type.
pub trait WorkflowDefinition: Send + Sync {
    /// Versioned name, such as `task.v1`.
    fn workflow_type(&self) -> &'static str;

    /// Completes the start input before it is recorded: the place to pin settings, so that a replay never depends on
    /// the configuration of the day.
    fn prepare_start(&self, input: Value) -> Value {
        input
    }

    /// A workflow before its first event.
    fn create(&self) -> Box<dyn Workflow>;

    /// A workflow as it was when the snapshot was taken.
    fn restore(&self, snapshot: &[u8]) -> Result<Box<dyn Workflow>, RestoreError>;
}

/// Answer to the question whether a signal is welcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is.
    Accept,
    /// The workflow has ended.
    Closed,
    /// It is not; the text says why, for the sender.
    Refuse(String),
}

/// An event that cannot follow the ones before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {event} cannot happen in state {state}")]
pub struct IllegalEvent {
    /// The event's kind and ids.
    pub event: String,
    /// The state's name.
    pub state: String,
}

/// A snapshot that this build cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read a snapshot of {workflow_type}: {reason}")]
pub struct RestoreError {
    /// The workflow type.
    pub workflow_type: String,
    /// What is wrong with it.
    pub reason: String,
}
