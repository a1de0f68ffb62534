//! What travels through Temporal: ids, positions and times, never content. Every type is read leniently, so that a newer
//! or an older build, or a person with the command line tool, cannot stop a workflow.

use std::{collections::BTreeMap, time::Duration};

use harness_journal::Work;
use harness_model::{ActivityId, TimerId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

/// Name of the Temporal workflow type.
pub(crate) const WORKFLOW: &str = "TaskWorkflow";
/// Name of the signal that says: something is to be done.
pub(crate) const WAKE: &str = "wake";
/// What a report says first. A payload without it is no report, whatever else it says.
const FORM: u32 = 1;
/// A report names activities, oldest first, and timers, the first due first, up to about this many bytes each. Once those
/// have ended a later report names others.
const NAMED_BYTES_MAX: usize = 12 * 1024;
/// What an entry takes besides its ids.
const ENTRY_BYTES: usize = 64;

/// What is left to do for a workflow, or why nobody here can say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// [`FORM`], or that of a later build. Always there, so that nothing else is taken for a report.
    pub(crate) form: u32,
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
    /// Events of a run after which a fresh one takes over; the usual number when it is not said. Part of the report, so
    /// that a history never depends on the options of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_events_max: Option<u32>,
    /// What an operator wants to find tasks by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<Labels>,
    /// Why the process that was asked cannot host the workflow; then the rest means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aside: Option<String>,
}

/// Input of a run: what is left to do, and what a run before it knew besides. A report alone is one as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handover {
    #[serde(flatten)]
    pub(crate) report: Report,
    /// Executions of announced activities so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) attempts: BTreeMap<ActivityId, u32>,
    /// Those among them that failed, in a row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failures: BTreeMap<ActivityId, u32>,
}

/// An announced activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announced {
    pub(crate) id: ActivityId,
    /// The Temporal activity type that runs it. Part of the report, so that a history never depends on the build.
    pub(crate) kind: String,
    /// Its time limit, in milliseconds.
    pub(crate) limit_ms: u64,
    /// Whether it is over in no time and may be repeated: then it runs as a local activity, which saves a round trip.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) quick: bool,
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
    /// Which process may run it, when there is only one at a time: for a later one it is lost, and may be recorded so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<String>,
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
    /// Execute a quick activity, for the time with this number.
    Run(ActivityId, u32),
}

impl Report {
    /// The report of what is left to do.
    pub(crate) fn of(work: Work, kind: impl Fn(&str) -> &'static str, epoch: Option<String>) -> Self {
        let activities = work.activities.into_iter().map(|activity| Announced {
            kind: if activity.outbound { String::new() } else { kind(&activity.name).to_owned() },
            quick: !activity.outbound && !activity.once && is_quick(&activity.name),
            id: activity.activity_id,
            limit_ms: millis(activity.start_to_close),
        });
        let timers = work.timers.into_iter().map(|timer| Timer { id: timer.timer_id, due: timer.due_at });
        Self {
            seq: work.seq,
            closed: work.closed,
            activities: named(activities, |activity| activity.id.as_str().len() + activity.kind.len()),
            timers: named(timers, |timer| timer.id.as_str().len()),
            epoch,
            ..Self::default()
        }
    }

    /// The report of a process that cannot host the workflow.
    pub(crate) fn aside(reason: impl Into<String>) -> Self {
        Self { aside: Some(reason.into()), ..Self::default() }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self {
            form: FORM,
            seq: 0,
            closed: false,
            activities: Vec::new(),
            timers: Vec::new(),
            epoch: None,
            run_events_max: None,
            labels: None,
            aside: None,
        }
    }
}

/// The first of them, up to [`NAMED_BYTES_MAX`], and at least one.
fn named<T>(entries: impl Iterator<Item = T>, bytes: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = NAMED_BYTES_MAX;
    let fits = |(position, entry): &(usize, T)| {
        let size = bytes(entry).saturating_add(ENTRY_BYTES);
        let fits = *position == 0 || size <= left;
        left = left.saturating_sub(size);
        fits
    };
    entries.enumerate().take_while(fits).map(|(_, entry)| entry).collect()
}

impl Announced {
    /// Whether it is a signal to another workflow.
    pub(crate) fn is_signal(&self) -> bool {
        self.kind.is_empty()
    }
}

/// Activities that only read and write the store.
fn is_quick(name: &str) -> bool {
    name == "intake.v1"
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
