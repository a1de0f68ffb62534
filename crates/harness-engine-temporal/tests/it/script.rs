//! A workflow for the tests of this crate: does what its signals say, and writes down what it sees.

use std::{collections::BTreeMap, time::Duration};

use harness_model::{
    Content, ContextId, Lifecycle, StatusChange, TaskEvent, TaskExtension, TaskId, TaskRecord, TaskState,
    Timestamp, WorkflowId,
};
use harness_ports::{
    ActivityOptions, ActivityTask, Admission, Command, Delivery, EventKind, HistoryEvent, IllegalEvent,
    OnCrash, Publish, RestoreError, Signal, StartWorkflow, Workflow, WorkflowDefinition,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

const SCRIPT: &str = "temporal_script.v1";

/// One thing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Run an activity that may be repeated, then go on.
    Run(String, String, Vec<Step>),
    /// Run an activity that may not.
    RunOnce(String, String, Vec<Step>),
    /// Run this activity so often, one after another, then go on.
    Rounds(u32, String, Vec<Step>),
    /// Wait for so many milliseconds, then go on.
    Wait(String, u64, Vec<Step>),
    /// So many timers that are due in this many milliseconds.
    Timers(u32, u64),
    Cancel(String),
    /// Signal another workflow.
    Tell(String),
    State(TaskState),
    Say(String),
    Close,
}

pub(crate) fn run(id: &str, name: &str, then: Vec<Step>) -> Step {
    Step::Run(id.to_owned(), name.to_owned(), then)
}

pub(crate) fn run_once(id: &str, name: &str, then: Vec<Step>) -> Step {
    Step::RunOnce(id.to_owned(), name.to_owned(), then)
}

pub(crate) fn wait(id: &str, ms: u64, then: Vec<Step>) -> Step {
    Step::Wait(id.to_owned(), ms, then)
}

pub(crate) fn say(text: &str) -> Step {
    Step::Say(text.to_owned())
}

/// An order to a workflow, which it starts if there is none.
pub(crate) fn order(workflow_id: &str, label: &str, key: Option<&str>, steps: &[Step]) -> Delivery {
    let input = json!({ "task": workflow_id });
    Delivery {
        workflow_id: WorkflowId::new(workflow_id),
        start: Some(StartWorkflow { workflow_type: SCRIPT.to_owned(), input }),
        signal: Some(Signal {
            name: "steps".to_owned(),
            payload: json!({ "label": label, "steps": steps }),
            dedupe_key: key.map(str::to_owned),
            trace: None,
        }),
        blocks: Vec::new(),
    }
}

/// Makes scripted workflows.
pub(crate) struct ScriptDefinition;

impl WorkflowDefinition for ScriptDefinition {
    fn workflow_type(&self) -> &'static str {
        SCRIPT
    }

    fn create(&self) -> Box<dyn Workflow> {
        Box::new(Script::default())
    }

    fn restore(&self, snapshot: &[u8]) -> Result<Box<dyn Workflow>, RestoreError> {
        let script: Result<Script, _> = serde_json::from_slice(snapshot);
        match script {
            Ok(script) => Ok(Box::new(script)),
            Err(error) => Err(RestoreError { workflow_type: SCRIPT.to_owned(), reason: error.to_string() }),
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Script {
    task: String,
    then: BTreeMap<String, Vec<Step>>,
    closed: bool,
}

#[derive(Deserialize)]
struct Order {
    label: String,
    steps: Vec<Step>,
}

/// What one event comes to.
#[derive(Default)]
struct Reaction {
    lines: Vec<String>,
    commands: Vec<Command>,
    state: Option<TaskState>,
}

impl Workflow for Script {
    fn apply(&mut self, event: &HistoryEvent) -> Result<Vec<Command>, IllegalEvent> {
        let mut reaction = Reaction::default();
        let (line, steps) = self.see(&event.kind);
        reaction.lines.push(line);
        for step in steps {
            self.act(step, &mut reaction);
        }
        let publish = self.publish(&reaction, event.at);
        reaction.commands.insert(0, Command::Publish(Box::new(publish)));
        Ok(reaction.commands)
    }

    fn admits(&self, _signal: &Signal) -> Admission {
        if self.closed { Admission::Closed } else { Admission::Accept }
    }

    fn snapshot(&self) -> Vec<u8> {
        json!(self).to_string().into_bytes()
    }
}

impl Script {
    fn see(&mut self, kind: &EventKind) -> (String, Vec<Step>) {
        match kind {
            EventKind::Started { input } => {
                self.task = input["task"].as_str().unwrap().to_owned();
                ("started".to_owned(), Vec::new())
            }
            EventKind::Signaled(signal) => {
                let order = Order::deserialize(&signal.payload).unwrap();
                (format!("signal {}", order.label), order.steps)
            }
            EventKind::ActivityCompleted { activity_id, .. } => {
                let then = self.then.remove(activity_id.as_str()).unwrap_or_default();
                (format!("completed {activity_id}"), then)
            }
            EventKind::ActivityFailed { activity_id, failure } => {
                let then = self.then.remove(activity_id.as_str()).unwrap_or_default();
                (format!("failed {activity_id} {:?}", failure.kind), then)
            }
            EventKind::TimerFired { timer_id } => {
                let then = self.then.remove(timer_id.as_str()).unwrap_or_default();
                (format!("fired {timer_id}"), then)
            }
        }
    }

    fn act(&mut self, step: Step, reaction: &mut Reaction) {
        match step {
            Step::Run(id, name, then) => self.begin(id, name, OnCrash::Rerun, then, reaction),
            Step::RunOnce(id, name, then) => self.begin(id, name, OnCrash::ReportUnknown, then, reaction),
            Step::Rounds(0, _, then) => then.into_iter().for_each(|step| self.act(step, reaction)),
            Step::Rounds(left, name, then) => {
                let rest = vec![Step::Rounds(left - 1, name.clone(), then)];
                self.begin(format!("{name} {left}"), name, OnCrash::Rerun, rest, reaction);
            }
            Step::Wait(id, ms, then) => {
                let after = Duration::from_millis(ms);
                reaction.commands.push(Command::StartTimer { timer_id: id.as_str().into(), after });
                self.then.insert(id, then);
            }
            Step::Timers(count, ms) => {
                for number in 0..count {
                    self.act(Step::Wait(format!("timer {number}"), ms, Vec::new()), reaction);
                }
            }
            Step::Cancel(id) => reaction.commands.push(Command::CancelActivity(id.into())),
            Step::Tell(to) => {
                let delivery = order(&to, "from another", None, &[]);
                let Delivery { workflow_id, start, signal, .. } = delivery;
                let signal = signal.unwrap();
                reaction.commands.push(Command::SignalWorkflow { workflow_id, start, signal });
            }
            Step::State(state) => reaction.state = Some(state),
            Step::Say(text) => reaction.lines.push(text),
            Step::Close => {
                self.closed = true;
                reaction.state = Some(TaskState::Completed);
                reaction.commands.push(Command::Close);
            }
        }
    }

    fn begin(
        &mut self,
        id: String,
        name: String,
        on_crash: OnCrash,
        then: Vec<Step>,
        reaction: &mut Reaction,
    ) {
        let options = ActivityOptions { start_to_close: Duration::from_secs(60), on_crash };
        let activity_id = id.as_str().into();
        let task = ActivityTask { activity_id, name, input: json!({ "of": id }), options, trace: None };
        self.then.insert(id, then);
        reaction.commands.push(Command::ScheduleActivity(task));
    }

    fn publish(&self, reaction: &Reaction, at: Timestamp) -> Publish {
        let state = reaction.state.unwrap_or(TaskState::Working);
        let status = |line: &String| StatusChange::to(state).with_text(Content::Inline(line.clone()));
        let record = TaskRecord {
            usage: Default::default(),
            task_id: TaskId::new(&self.task),
            context_id: ContextId::new(format!("context of {}", self.task)),
            lifecycle: Lifecycle::Delegated,
            status: StatusChange::to(state),
            status_at: at,
            created_at: at,
            extension: TaskExtension::default(),
        };
        Publish {
            task_id: TaskId::new(&self.task),
            key: String::new(),
            events: reaction.lines.iter().map(|line| TaskEvent::StatusChanged(status(line))).collect(),
            record: Some(record),
            history: Vec::new(),
        }
    }
}
