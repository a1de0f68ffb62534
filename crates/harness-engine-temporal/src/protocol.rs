//! What travels through Temporal: ids, positions and times, never content. Every type is read leniently, so that a newer
//! or an older build, or a person with the command line tool, cannot stop a workflow.

use std::time::Duration;

use harness_journal::Work;
use harness_model::{ActivityId, TimerId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

/// Name of the Temporal workflow type.
pub(crate) const WORKFLOW: &str = "TaskWorkflow";
/// Name of the signal that says: something is to be done.
pub(crate) const WAKE: &str = "wake";

/// What is left to do for a workflow, or why nobody here can say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Position in the journal.
    #[serde(default)]
    pub(crate) seq: u64,
    /// Whether the workflow has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) closed: bool,
    /// Announced activities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) activities: Vec<Announced>,
    /// Timers, the one that is due first first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) timers: Vec<Timer>,
    /// Which process may run activities, when there is only one: executions of an earlier one are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<String>,
    /// What an operator wants to find tasks by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<Labels>,
    /// Why the process that was asked cannot host the workflow; then the rest means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aside: Option<String>,
}

/// An announced activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announced {
    pub(crate) id: ActivityId,
    /// The Temporal activity type that runs it. Part of the report, so that a history never depends on the build.
    pub(crate) kind: String,
    /// Its time limit, in milliseconds.
    pub(crate) limit_ms: u64,
}

/// A timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timer {
    pub(crate) id: TimerId,
    pub(crate) due: Timestamp,
}

/// Search attributes of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Labels {
    pub(crate) context_id: String,
    pub(crate) state: String,
    pub(crate) agent: String,
}

/// Input of an execution of an activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Execute {
    pub(crate) task_id: WorkflowId,
    /// Names everything that belongs together in logs: the id of the task.
    pub(crate) correlation_id: String,
    pub(crate) activity_id: ActivityId,
    /// Counts the executions of this activity, from 1.
    pub(crate) attempt: u32,
}

/// A question or order to the host, answered with a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) task_id: WorkflowId,
    pub(crate) what: Order,
}

/// What the host is to do before it reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Nothing.
    Report,
    /// Record that an execution went away without an end.
    Lost(ActivityId),
    /// Let the timers fire that are due, once this one is.
    Fire(Timestamp),
    /// Send a signal to another workflow.
    Send(ActivityId),
}

impl Report {
    /// The report of what is left to do.
    pub(crate) fn of(work: Work, kind: impl Fn(&str) -> &'static str, epoch: Option<String>) -> Self {
        let activities = work.activities.into_iter().map(|activity| Announced {
            kind: if activity.outbound { String::new() } else { kind(&activity.name).to_owned() },
            id: activity.activity_id,
            limit_ms: millis(activity.start_to_close),
        });
        let timers = work.timers.into_iter().map(|timer| Timer { id: timer.timer_id, due: timer.due_at });
        Self {
            seq: work.seq,
            closed: work.closed,
            activities: activities.collect(),
            timers: timers.collect(),
            epoch,
            labels: None,
            aside: None,
        }
    }

    /// The report of a process that cannot host the workflow.
    pub(crate) fn aside(reason: impl Into<String>) -> Self {
        Self { aside: Some(reason.into()), ..Self::default() }
    }
}

impl Announced {
    /// Whether it is a signal to another workflow.
    pub(crate) fn is_signal(&self) -> bool {
        self.kind.is_empty()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
