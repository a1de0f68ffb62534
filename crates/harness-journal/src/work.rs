//! What is left to do for a workflow, as the store has it.

use std::time::Duration;

use harness_model::{ActivityId, TimerId, Timestamp, WorkflowId};
use harness_ports::{OnCrash, StoreError, StoredTimer, StoredWorkflow};

use crate::{Host, outbox};

/// Everything that somebody has to see to, at one position of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Position in the journal. What belongs to a later position replaces this.
    pub seq: u64,
    /// Whether the workflow has ended, or never was.
    pub closed: bool,
    /// Announced activities, in order of their ids.
    pub activities: Vec<ActivityWork>,
    /// Timers, the one that is due first first. At least as new as the position.
    pub timers: Vec<TimerWork>,
}

/// An announced activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityWork {
    /// Unique within the workflow.
    pub activity_id: ActivityId,
    /// Versioned name.
    pub name: String,
    /// From start to result.
    pub start_to_close: Duration,
    /// Whether it must not be executed twice.
    pub once: bool,
    /// Whether it is a signal to another workflow, which [`Host::send_signal`] sends.
    pub outbound: bool,
}

/// A timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerWork {
    /// Unique among the running ones of the workflow.
    pub timer_id: TimerId,
    /// When it is due.
    pub due_at: Timestamp,
}

impl Host {
    /// What is left to do for a workflow. Errors: the store's.
    pub async fn work(&self, workflow_id: &WorkflowId) -> Result<Work, StoreError> {
        // In this order: timers that are newer than the position do no harm, older ones would be missed.
        let stored = self.store.workflow(workflow_id).await?;
        let timers = self.store.timers(workflow_id).await?;
        Ok(stored.map_or_else(nothing, |stored| collect(stored, timers)))
    }
}

fn nothing() -> Work {
    Work { closed: true, ..Work::default() }
}

fn collect(stored: StoredWorkflow, timers: Vec<StoredTimer>) -> Work {
    let activity = |task: harness_ports::ActivityTask| ActivityWork {
        outbound: outbox::is_outbound(&task),
        once: task.options.on_crash == OnCrash::ReportUnknown,
        activity_id: task.activity_id,
        name: task.name,
        start_to_close: task.options.start_to_close,
    };
    let timer = |timer: StoredTimer| TimerWork { timer_id: timer.timer_id, due_at: timer.due_at };
    Work {
        seq: stored.next_seq,
        closed: stored.closed,
        activities: stored.activities.into_iter().map(activity).collect(),
        // The ones of a workflow that has ended are only cleared away.
        timers: if stored.closed { Vec::new() } else { timers.into_iter().map(timer).collect() },
    }
}
