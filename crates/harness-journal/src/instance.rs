//! The state of one workflow, and how events change it. Nothing here waits for anything.

mod commands;
mod load;

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use harness_model::{ActivityId, TaskId, TimerId, TraceParent, WorkflowId};
use harness_ports::{
    ActivityFailure, ActivityTask, Admission, Command, Committed, EventKind, HistoryEvent, OnCrash, Signal,
    StartWorkflow, Workflow, WorkflowDefinition, Write,
};
use serde_json::Value;

use crate::{batch::Batch, outbox};

/// One workflow in memory. After a batch was collected and before it is committed, the state is ahead of the store; when
/// the commit fails the instance is thrown away.
pub(crate) struct Instance {
    workflow_id: WorkflowId,
    /// The task whose log the cursors of receipts refer to.
    task_id: TaskId,
    life: Life,
    next_seq: u64,
    /// Events included in the newest snapshot.
    snapshot_seq: u64,
    announced: HashMap<ActivityId, Announced>,
    /// Where in a trace the signal came from that the events of now follow from.
    trace: Option<TraceParent>,
    cursor: Cursor,
}

/// Where a workflow is in its life.
enum Life {
    /// There is none of this id.
    Absent,
    /// It takes events.
    Open(Box<dyn Workflow>),
    /// It has ended.
    Closed,
}

/// The same without the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Absent,
    Open,
    Closed,
}

/// An announced activity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Announced {
    by: By,
    /// Its name, when it must not be executed twice.
    once: Option<String>,
    trace: Option<TraceParent>,
}

/// Who asked for an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The workflow; it ends with the workflow.
    Workflow,
    /// The host, to deliver a signal; it outlives the workflow.
    Host,
}

impl Announced {
    fn of(task: &ActivityTask) -> Self {
        let by = if outbox::is_outbound(task) { By::Host } else { By::Workflow };
        let once = (task.options.on_crash == OnCrash::ReportUnknown).then(|| task.name.clone());
        Self { by, once, trace: task.trace.clone() }
    }
}

/// The newest entry of the workflow's own log, if nobody else can have added one since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    Unknown,
    Known(Option<u64>),
}

/// Why a workflow cannot go on; for the log and for whoever signals it.
pub(crate) type Unfit = String;

impl Instance {
    fn absent(workflow_id: &WorkflowId) -> Self {
        Self {
            workflow_id: workflow_id.clone(),
            task_id: TaskId::from(workflow_id),
            life: Life::Absent,
            next_seq: 0,
            snapshot_seq: 0,
            announced: HashMap::new(),
            trace: None,
            cursor: Cursor::Known(None),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.life {
            Life::Absent => Standing::Absent,
            Life::Open(_) => Standing::Open,
            Life::Closed => Standing::Closed,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.standing() == Standing::Open
    }

    pub(crate) fn workflow_id(&self) -> &WorkflowId {
        &self.workflow_id
    }

    /// Position of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether an activity is announced.
    pub(crate) fn announces(&self, activity_id: &ActivityId) -> bool {
        self.announced.contains_key(activity_id)
    }

    /// The name of an announced activity that must not be executed twice.
    pub(crate) fn runs_once(&self, activity_id: &ActivityId) -> Option<String> {
        self.announced.get(activity_id)?.once.clone()
    }

    /// The newest log entry; `None` when it has to be read from the store.
    pub(crate) fn cursor(&self) -> Option<Option<u64>> {
        match self.cursor {
            Cursor::Known(cursor) => Some(cursor),
            Cursor::Unknown => None,
        }
    }

    /// Whether the workflow wants a signal now.
    pub(crate) fn admits(&self, signal: &Signal) -> Result<Admission, Unfit> {
        match &self.life {
            Life::Open(workflow) => guarded(|| workflow.admits(signal)),
            Life::Absent | Life::Closed => Ok(Admission::Closed),
        }
    }

    /// Begins the workflow, unless it would not want the signal that comes with the start: then nothing changes.
    pub(crate) fn start(
        &mut self,
        definition: &Arc<dyn WorkflowDefinition>,
        start: &StartWorkflow,
        signal: Option<&Signal>,
        batch: &mut Batch,
    ) -> Result<Admission, Unfit> {
        let (mut workflow, input) =
            guarded(|| (definition.create(), definition.prepare_start(start.input.clone())))?;
        self.trace = signal.and_then(|signal| signal.trace.clone());
        let event = HistoryEvent { at: batch.at, kind: EventKind::Started { input } };
        let commands = apply(workflow.as_mut(), &event)?;
        if let Some(signal) = signal {
            match guarded(|| workflow.admits(signal))? {
                Admission::Accept => {}
                refusal @ (Admission::Closed | Admission::Refuse(_)) => return Ok(refusal),
            }
        }
        batch.writes.push(Write::CreateWorkflow {
            workflow_id: self.workflow_id.clone(),
            workflow_type: start.workflow_type.clone(),
        });
        self.life = Life::Open(workflow);
        self.journal(event, commands, batch);
        Ok(Admission::Accept)
    }

    /// Records a signal that was admitted.
    pub(crate) fn signal(
        &mut self,
        signal: &Signal,
        cursor: Option<u64>,
        batch: &mut Batch,
    ) -> Result<(), Unfit> {
        self.trace.clone_from(&signal.trace);
        self.record(EventKind::Signaled(signal.clone()), batch)?;
        if let Some(dedupe_key) = &signal.dedupe_key {
            batch.delivered.insert(dedupe_key.clone(), cursor);
            batch.writes.push(Write::RecordDelivery {
                workflow_id: self.workflow_id.clone(),
                dedupe_key: dedupe_key.clone(),
                cursor,
            });
        }
        Ok(())
    }

    /// Records the end of an activity. One that is not announced any more is no news.
    pub(crate) fn activity_ended(
        &mut self,
        activity_id: &ActivityId,
        outcome: &Result<Value, ActivityFailure>,
        batch: &mut Batch,
    ) -> Result<(), Unfit> {
        let Some(announced) = self.announced.get(activity_id) else { return Ok(()) };
        self.trace.clone_from(&announced.trace);
        let position = batch.writes.len();
        self.forget_activity(activity_id, batch);
        let activity_id = activity_id.clone();
        let kind = match outcome.clone() {
            Ok(result) => EventKind::ActivityCompleted { activity_id, result },
            Err(failure) => EventKind::ActivityFailed { activity_id, failure },
        };
        self.record(kind, batch).inspect_err(|_| batch.take_back(position))
    }

    /// Takes an activity out of the announced ones without telling the workflow.
    pub(crate) fn forget_activity(&mut self, activity_id: &ActivityId, batch: &mut Batch) {
        if self.announced.remove(activity_id).is_some() {
            batch.writes.push(Write::RemoveActivity {
                workflow_id: self.workflow_id.clone(),
                activity_id: activity_id.clone(),
            });
            batch.cancel.push(activity_id.clone());
        }
    }

    /// Records that a stored timer went off. A workflow that has ended only loses the timer.
    pub(crate) fn timer_fired(&mut self, timer_id: &TimerId, batch: &mut Batch) -> Result<(), Unfit> {
        let position = batch.writes.len();
        self.remove_timer(timer_id.clone(), batch);
        if !self.is_open() {
            return Ok(());
        }
        self.record(EventKind::TimerFired { timer_id: timer_id.clone() }, batch)
            .inspect_err(|_| batch.take_back(position))
    }

    /// Adds a snapshot to the batch if one was asked for, or if the journal would take long to replay.
    pub(crate) fn snapshot_if_due(&mut self, tail_max: u64, batch: &mut Batch) -> Result<(), Unfit> {
        let Life::Open(workflow) = &self.life else { return Ok(()) };
        let tail = self.next_seq - self.snapshot_seq;
        if tail == 0 || !(batch.checkpoint || tail >= tail_max) {
            return Ok(());
        }
        let state = Bytes::from(guarded(|| workflow.snapshot())?);
        self.snapshot_seq = self.next_seq;
        batch.writes.push(Write::SaveSnapshot {
            workflow_id: self.workflow_id.clone(),
            seq: self.next_seq,
            state,
        });
        Ok(())
    }

    /// Takes note of what the store made of the batch.
    pub(crate) fn committed(&mut self, committed: &Committed) {
        // A running activity may add entries by itself at any time.
        if self.announced.values().any(|activity| activity.by == By::Workflow) {
            self.cursor = Cursor::Unknown;
            return;
        }
        let newest = committed.entries.iter().rev().find(|(task_id, _)| *task_id == self.task_id);
        if let Some((_, entry)) = newest {
            self.cursor = Cursor::Known(Some(entry.seq));
        }
    }

    /// Applies an event to an open workflow and collects what it causes.
    fn record(&mut self, kind: EventKind, batch: &mut Batch) -> Result<(), Unfit> {
        let Life::Open(workflow) = &mut self.life else { return Ok(()) };
        let event = HistoryEvent { at: batch.at, kind };
        let commands = apply(workflow.as_mut(), &event)?;
        self.journal(event, commands, batch);
        Ok(())
    }

    fn journal(&mut self, event: HistoryEvent, commands: Vec<Command>, batch: &mut Batch) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let workflow_id = self.workflow_id.clone();
        batch.writes.push(Write::AppendJournal { workflow_id, seq, event });
        self.collect(seq, commands, batch);
    }
}

fn apply(workflow: &mut dyn Workflow, event: &HistoryEvent) -> Result<Vec<Command>, Unfit> {
    guarded(|| workflow.apply(event))?.map_err(|illegal| illegal.to_string())
}

/// Calls code of a workflow. It is pure and must not panic; when it does, only its own workflow may suffer.
fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Unfit> {
    // The state behind a panic is never used again: the workflow is set aside.
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| "its code panicked".to_owned())
}
