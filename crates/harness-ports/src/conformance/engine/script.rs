//! The scripted workflow: does what its signals say and writes down everything it sees.

use std::{collections::BTreeMap, time::Duration};

use harness_model::{
    Content, ContextId, Lifecycle, StatusChange, TaskEvent, TaskExtension, TaskId, TaskRecord, TaskState,
    Timestamp, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    ActivityOptions, ActivityTask, Admission, Command, EventKind, FailureKind, HistoryEvent, IllegalEvent,
    OnCrash, Publish, RestoreError, Signal, StartWorkflow, Workflow, WorkflowDefinition,
};

pub(super) const SCRIPT_WORKFLOW: &str = "script.v1";
const DO_SIGNAL: &str = "do.v1";

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Op {
    /// Run an activity; when it ended, whatever the end, do the rest.
    Run {
        id: String,
        name: String,
        on_crash: OnCrash,
        limit_ms: u64,
        then: Vec<Op>,
    },
    CancelRun(String),
    /// Start a timer; when it fires, do the rest.
    Timer {
        id: String,
        ms: u64,
        then: Vec<Op>,
    },
    CancelTimer(String),
    /// Signal another workflow, starting it if it does not exist.
    Tell {
        to: String,
        key: Option<String>,
        label: String,
    },
    /// The same, without starting it.
    TellIfThere {
        to: String,
        label: String,
    },
    Say(String),
    /// Say what only the whole state knows.
    SayState,
    Checkpoint,
    Refuse,
    Close,
    /// Fail as on a history that cannot be.
    Break,
    Panic,
}

/// Runs an activity that may be repeated.
pub(super) fn run(id: &str, name: &str, then: Vec<Op>) -> Op {
    let (id, name) = (id.to_owned(), name.to_owned());
    Op::Run { id, name, on_crash: OnCrash::Rerun, limit_ms: 60_000, then }
}

/// Runs an activity that may not be repeated.
pub(super) fn run_once(id: &str, name: &str, then: Vec<Op>) -> Op {
    let (id, name) = (id.to_owned(), name.to_owned());
    Op::Run { id, name, on_crash: OnCrash::ReportUnknown, limit_ms: 60_000, then }
}

pub(super) fn timer(id: &str, ms: u64, then: Vec<Op>) -> Op {
    Op::Timer { id: id.to_owned(), ms, then }
}

pub(super) fn say(text: &str) -> Op {
    Op::Say(text.to_owned())
}

/// The signal that makes the workflow do something.
pub(super) fn signal(label: &str, key: Option<&str>, ops: &[Op]) -> Signal {
    Signal {
        name: DO_SIGNAL.to_owned(),
        payload: json!({ "label": label, "ops": ops }),
        dedupe_key: key.map(str::to_owned),
        trace: None,
    }
}

pub(super) fn start(workflow_id: &str) -> StartWorkflow {
    StartWorkflow { workflow_type: SCRIPT_WORKFLOW.to_owned(), input: json!({ "task": workflow_id }) }
}

/// Makes scripted workflows.
#[derive(Debug, Default)]
pub(super) struct ScriptDefinition {
    /// Whether this build cannot read snapshots.
    pub(super) forgetful: bool,
}

impl WorkflowDefinition for ScriptDefinition {
    fn workflow_type(&self) -> &'static str {
        SCRIPT_WORKFLOW
    }

    fn prepare_start(&self, mut input: Value) -> Value {
        input["prepared"] = json!(true);
        input
    }

    fn create(&self) -> Box<dyn Workflow> {
        Box::new(Script::default())
    }

    fn restore(&self, snapshot: &[u8]) -> Result<Box<dyn Workflow>, RestoreError> {
        let failed = |reason: &str| RestoreError {
            workflow_type: SCRIPT_WORKFLOW.to_owned(),
            reason: reason.to_owned(),
        };
        if self.forgetful {
            return Err(failed("this build reads no snapshots"));
        }
        let script: Script = serde_json::from_slice(snapshot).map_err(|_| failed("not a script"))?;
        Ok(Box::new(script))
    }
}

/// The state: everything that later behaviour depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Script {
    task: String,
    events: u64,
    /// What to do at the end of an activity or timer, by its id.
    then: BTreeMap<String, Vec<Op>>,
    refusing: bool,
    closed: bool,
}

#[derive(Deserialize)]
struct Order {
    label: String,
    ops: Vec<Op>,
}

/// What one event has come to so far.
#[derive(Default)]
struct Reaction {
    lines: Vec<String>,
    commands: Vec<Command>,
}

impl Workflow for Script {
    fn apply(&mut self, event: &HistoryEvent) -> Result<Vec<Command>, IllegalEvent> {
        let (line, ops) = self.see(&event.kind)?;
        let mut reaction = Reaction { lines: vec![line], commands: Vec::new() };
        self.events += 1;
        for op in ops {
            self.act(op, &mut reaction)?;
        }
        let publish = self.publish(&reaction.lines, event.at);
        // In front, so that what a batch publishes is in the order of its events whatever else it asks for.
        reaction.commands.insert(0, Command::Publish(Box::new(publish)));
        Ok(reaction.commands)
    }

    fn admits(&self, signal: &Signal) -> Admission {
        if self.closed {
            Admission::Closed
        } else if self.refusing || signal.name != DO_SIGNAL {
            Admission::Refuse("not now".to_owned())
        } else {
            Admission::Accept
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }
}

impl Script {
    fn see(&mut self, kind: &EventKind) -> Result<(String, Vec<Op>), IllegalEvent> {
        match kind {
            EventKind::Started { input } => {
                self.task = input["task"].as_str().unwrap_or_default().to_owned();
                if input["broken"] == true {
                    return Err(illegal("a start"));
                }
                let prepared = if input["prepared"] == true { "started" } else { "started unprepared" };
                Ok((prepared.to_owned(), Vec::new()))
            }
            EventKind::Signaled(signal) => {
                let order = Order::deserialize(&signal.payload).map_err(|_| illegal("a signal"))?;
                Ok((format!("signal {}", order.label), order.ops))
            }
            EventKind::ActivityCompleted { activity_id, result } => {
                let line = format!("completed {activity_id} {result}");
                Ok((line, self.then.remove(activity_id.as_str()).unwrap_or_default()))
            }
            EventKind::ActivityFailed { activity_id, failure } => {
                let line = format!("failed {activity_id} {}", kind_name(failure.kind));
                Ok((line, self.then.remove(activity_id.as_str()).unwrap_or_default()))
            }
            EventKind::TimerFired { timer_id } => {
                let then = self.then.remove(timer_id.as_str()).unwrap_or_default();
                Ok((format!("fired {timer_id}"), then))
            }
        }
    }

    fn act(&mut self, op: Op, reaction: &mut Reaction) -> Result<(), IllegalEvent> {
        let commands = &mut reaction.commands;
        match op {
            Op::Run { id, name, on_crash, limit_ms, then } => {
                let options = ActivityOptions { start_to_close: Duration::from_millis(limit_ms), on_crash };
                let activity_id = id.as_str().into();
                let task =
                    ActivityTask { activity_id, name, input: json!({ "of": id }), options, trace: None };
                self.then.insert(id, then);
                commands.push(Command::ScheduleActivity(task));
            }
            Op::CancelRun(id) => commands.push(Command::CancelActivity(id.into())),
            Op::Timer { id, ms, then } => {
                let after = Duration::from_millis(ms);
                commands.push(Command::StartTimer { timer_id: id.as_str().into(), after });
                self.then.insert(id, then);
            }
            Op::CancelTimer(id) => commands.push(Command::CancelTimer(id.into())),
            Op::Tell { to, key, label } => commands.push(Command::SignalWorkflow {
                workflow_id: WorkflowId::new(&to),
                start: Some(start(&to)),
                signal: signal(&label, key.as_deref(), &[]),
            }),
            Op::TellIfThere { to, label } => commands.push(Command::SignalWorkflow {
                workflow_id: WorkflowId::new(to),
                start: None,
                signal: signal(&label, None, &[]),
            }),
            Op::Say(text) => reaction.lines.push(text),
            Op::SayState => {
                let state = format!("event {} then {:?}", self.events, self.then.keys().collect::<Vec<_>>());
                reaction.lines.push(state);
            }
            Op::Checkpoint => commands.push(Command::Checkpoint),
            Op::Refuse => self.refusing = true,
            Op::Close => {
                self.closed = true;
                commands.push(Command::Close);
            }
            Op::Break => return Err(illegal("an order to break")),
            Op::Panic => panic!("the script says so"),
        }
        Ok(())
    }

    fn publish(&self, lines: &[String], at: Timestamp) -> Publish {
        let status =
            |line: &String| StatusChange::to(TaskState::Working).with_text(Content::Inline(line.clone()));
        let record = TaskRecord {
            usage: Default::default(),
            task_id: TaskId::new(&self.task),
            context_id: ContextId::new("suite"),
            lifecycle: Lifecycle::Delegated,
            status: lines.last().map_or_else(|| StatusChange::to(TaskState::Working), status),
            status_at: at,
            created_at: at,
            extension: TaskExtension::default(),
        };
        Publish {
            task_id: TaskId::new(&self.task),
            key: String::new(),
            events: lines.iter().map(|line| TaskEvent::StatusChanged(status(line))).collect(),
            record: Some(record),
            history: Vec::new(),
        }
    }
}

fn illegal(event: &str) -> IllegalEvent {
    IllegalEvent { event: event.to_owned(), state: "scripted".to_owned() }
}

fn kind_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Retryable { .. } => "retryable",
        FailureKind::Fatal => "fatal",
        FailureKind::TimedOut => "timed_out",
        FailureKind::Canceled => "canceled",
        FailureKind::OutcomeUnknown => "outcome_unknown",
    }
}
