//! Drives a task workflow by hand: events in, a readable transcript out.

use std::collections::BTreeMap;

use harness_model::{
    ActivityId, BlockRef, CallId, CancelRequest, CodedError, Content, ErrorCode, Finish, InboundMessage,
    ItemBody, ItemPart, Lifecycle, Participant, ParticipantKind, ParticipantRole, StartTask, StoredItem,
    TaskEvent, TaskExtension, TaskMode, Timestamp, Usage, codes,
};
use harness_ports::{
    ActivityFailure, ActivityTask, Admission, Command, EventKind, FailureKind, HistoryAppend, HistoryEvent,
    OnCrash, Signal, Workflow, WorkflowDefinition,
};
use serde_json::{Value, json};

use crate::task::{TaskDefinition, state::TaskData};
use crate::{
    AcceptedMessage, AnswerText, CallAction, IntakeOutcome, IntakeResult, IntrinsicRequest, ItemDraft,
    ModelAnswer, ModelOutcome, PlannedCall, SlashCommand, TaskSettings, ToolResultFacts, Verdict,
};

pub(super) struct Driver {
    pub(super) workflow: Box<dyn Workflow>,
    definition: TaskDefinition,
    /// Activities in flight, by id.
    running: BTreeMap<String, ActivityTask>,
    timers: Vec<String>,
    clock: i64,
    /// How often words of the agent entered the history.
    pub(super) spoken: usize,
    /// One line per command since the last look.
    lines: Vec<String>,
    history: Vec<HistoryEvent>,
}

pub(super) fn start(lifecycle: Lifecycle) -> StartTask {
    let person =
        |id: &str, role, kind| Participant { id: id.into(), kind, role, display_name: String::new() };
    StartTask {
        task_id: "t1".into(),
        context_id: "c1".into(),
        agent_id: "agent".into(),
        lifecycle,
        mode: TaskMode::Agent,
        extension: TaskExtension {
            name: "n".to_owned(),
            goal: "g".to_owned(),
            participants: vec![
                person("ada", ParticipantRole::Reporter, ParticipantKind::Human),
                person("agent", ParticipantRole::Assignee, ParticipantKind::Agent),
            ],
            ..TaskExtension::default()
        },
        model: None,
        reasoning_effort: None,
        depth: 0,
        awaits_message: false,
    }
}

pub(super) fn block(text: &str) -> BlockRef {
    BlockRef::to(text.as_bytes())
}

pub(super) fn message(id: &str) -> InboundMessage {
    InboundMessage { message_id: id.into(), block: block(id), sender: "ada".into(), interrupt: false }
}

pub(super) fn tool(id: &str, idempotent: bool) -> PlannedCall {
    call(
        id,
        CallAction::Tool { arguments: block("{}"), idempotent, read_only: idempotent, deduplicates: false },
    )
}

pub(super) fn call(id: &str, action: CallAction) -> PlannedCall {
    PlannedCall { call_id: CallId::from(id), name: format!("tool-{id}"), summary: String::new(), action }
}

pub(super) fn ask(id: &str, question: &str) -> PlannedCall {
    let request = IntrinsicRequest::AskParticipant {
        participant_id: "ada".into(),
        question: Content::Inline(question.to_owned()),
        options: Vec::new(),
    };
    call(id, CallAction::Intrinsic(request))
}

pub(super) fn refused(id: &str) -> PlannedCall {
    call(id, CallAction::Refused(CodedError::new(codes::TOOL_NOT_FOUND, "no such tool")))
}

pub(super) fn answer(text: &str, calls: Vec<PlannedCall>) -> ModelOutcome {
    let text = (!text.is_empty()).then(|| AnswerText {
        text: Content::Inline(text.to_owned()),
        streamed: false,
        tail: Content::Inline(text.to_owned()),
    });
    ModelOutcome::Answered(Box::new(ModelAnswer {
        manifest: block("manifest"),
        item: item("model"),
        finish: if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
        answer: text,
        calls,
        usage: Usage { input: Some(100), output: Some(10), ..Usage::default() },
        model: "scripted:test".to_owned(),
        context_chars: 400,
    }))
}

pub(super) fn item(text: &str) -> ItemDraft {
    ItemDraft { body: ItemBody::Block(block(text)), chars: text.len() as u64 }
}

pub(super) fn tool_result(text: &str) -> ToolResultFacts {
    ToolResultFacts { item: item(text), is_error: false, code: None, change: None }
}

pub(super) fn failure(kind: FailureKind) -> ActivityFailure {
    ActivityFailure { code: codes::PROVIDER_RETRYABLE, message: "no luck".to_owned(), kind }
}

impl Driver {
    pub(super) fn new(start: StartTask) -> Self {
        Self::with_settings(start, TaskSettings::default())
    }

    pub(super) fn with_settings(start: StartTask, settings: TaskSettings) -> Self {
        let mut driver = Self::unstarted(settings);
        let input = driver.definition.prepare_start(serde_json::to_value(start).unwrap());
        driver.event(EventKind::Started { input });
        driver
    }

    pub(super) fn unstarted(settings: TaskSettings) -> Self {
        let definition = TaskDefinition::new(settings);
        Self {
            workflow: definition.create(),
            definition,
            running: BTreeMap::new(),
            timers: Vec::new(),
            clock: 0,
            spoken: 0,
            lines: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Applies an event; afterwards checks that the snapshot alone would have taken it the same way.
    pub(super) fn event(&mut self, kind: EventKind) {
        self.clock += 10;
        let event = HistoryEvent { at: Timestamp::from_millis(self.clock), kind };
        let recorded: HistoryEvent = serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap();
        let before = self.workflow.snapshot();
        let commands = self.workflow.apply(&recorded).unwrap();
        if !before.is_empty() {
            let mut twin = self.definition.restore(&before).unwrap();
            assert_eq!(twin.apply(&recorded).unwrap(), commands, "a restored snapshot went another way");
            assert_eq!(twin.snapshot(), self.workflow.snapshot());
        }
        self.history.push(recorded);
        for command in commands {
            self.perform(command);
        }
    }

    fn perform(&mut self, command: Command) {
        let line = match command {
            Command::ScheduleActivity(task) => {
                let again = if task.options.on_crash == OnCrash::Rerun { "" } else { " (once)" };
                let name = task.name.clone();
                self.running.insert(task.activity_id.to_string(), task);
                format!("run {}{again}", name.trim_end_matches(".v1"))
            }
            Command::CancelActivity(id) => {
                self.running.remove(id.as_str()).expect("only running activities are canceled");
                "cancel activity".to_owned()
            }
            Command::StartTimer { timer_id, .. } => {
                self.timers.push(timer_id.to_string());
                "start timer".to_owned()
            }
            Command::CancelTimer(id) => {
                self.timers.retain(|timer| timer != id.as_str());
                "cancel timer".to_owned()
            }
            Command::SignalWorkflow { workflow_id, .. } => format!("signal {workflow_id}"),
            Command::Publish(publish) => {
                assert!(publish.record.is_some());
                self.spoken +=
                    publish.history.iter().filter(|h| matches!(h, HistoryAppend::Status { .. })).count();
                let shown: Vec<String> = publish.events.iter().map(show).collect();
                if shown.is_empty() { "history".to_owned() } else { shown.join(" ") }
            }
            Command::Checkpoint => return,
            Command::Close => "close".to_owned(),
        };
        self.lines.push(line);
    }

    /// What happened since the last look.
    pub(super) fn took(&mut self) -> String {
        std::mem::take(&mut self.lines).join(", ")
    }

    pub(super) fn phase(&self) -> String {
        let snapshot = self.workflow.snapshot();
        if snapshot.is_empty() {
            return "new".to_owned();
        }
        self.data(&snapshot).phase.name().to_owned()
    }

    pub(super) fn state(&self) -> TaskData {
        self.data(&self.workflow.snapshot())
    }

    fn data(&self, snapshot: &[u8]) -> TaskData {
        serde_json::from_slice(snapshot).unwrap()
    }

    pub(super) fn signal(&mut self, name: &str, payload: Value) {
        let signal = Signal { name: name.to_owned(), payload, dedupe_key: None, trace: None };
        assert_eq!(self.workflow.admits(&signal), Admission::Accept);
        self.event(EventKind::Signaled(signal));
    }

    pub(super) fn say(&mut self, message: &InboundMessage) {
        self.signal(harness_model::MESSAGE_SIGNAL, serde_json::to_value(message).unwrap());
    }

    pub(super) fn cancel(&mut self) {
        let request = CancelRequest { reason: "canceled by client".to_owned(), by: "ada".into() };
        self.signal(harness_model::CANCEL_SIGNAL, serde_json::to_value(request).unwrap());
    }

    /// Ids of the activities of this kind, oldest first.
    pub(super) fn activities(&self, name: &str) -> Vec<ActivityId> {
        let number = |id: &ActivityId| id.as_str().rsplit('-').next().unwrap().parse::<u64>().unwrap();
        let mut ids: Vec<ActivityId> = self
            .running
            .values()
            .filter(|task| task.name.starts_with(name))
            .map(|task| task.activity_id.clone())
            .collect();
        ids.sort_by_key(number);
        ids
    }

    pub(super) fn only(&self, name: &str) -> ActivityId {
        let ids = self.activities(name);
        assert_eq!(ids.len(), 1, "one {name} in flight");
        ids[0].clone()
    }

    pub(super) fn input(&self, id: &ActivityId) -> Value {
        self.running[id.as_str()].input.clone()
    }

    pub(super) fn complete(&mut self, id: &ActivityId, result: impl serde::Serialize) {
        self.running.remove(id.as_str());
        let result = serde_json::to_value(result).unwrap();
        self.event(EventKind::ActivityCompleted { activity_id: id.clone(), result });
    }

    pub(super) fn fail(&mut self, id: &ActivityId, failure: ActivityFailure) {
        self.running.remove(id.as_str());
        self.event(EventKind::ActivityFailed { activity_id: id.clone(), failure });
    }

    pub(super) fn fire(&mut self) {
        let timer = self.timers.remove(0);
        self.event(EventKind::TimerFired { timer_id: timer.as_str().into() });
    }

    /// Intake accepts everything that waits.
    pub(super) fn intake(&mut self) {
        self.intake_with(|_| accepted());
    }

    pub(super) fn intake_with(&mut self, verdict: impl Fn(&str) -> Verdict) {
        let id = self.only("intake");
        let input = self.input(&id);
        let messages = input["messages"].as_array().unwrap();
        let outcomes = messages
            .iter()
            .map(|m| {
                let message_id = m["message_id"].as_str().unwrap();
                IntakeOutcome { message_id: message_id.into(), verdict: verdict(message_id) }
            })
            .collect();
        self.complete(&id, IntakeResult { outcomes });
    }

    pub(super) fn model(&mut self, outcome: ModelOutcome) {
        let id = self.only("invoke_model");
        self.complete(&id, outcome);
    }

    /// A task whose model is being asked for the first time.
    pub(super) fn modeling(lifecycle: Lifecycle) -> Self {
        let mut driver = Self::new(start(lifecycle));
        driver.say(&message("m1"));
        driver.intake();
        driver.took();
        driver
    }

    /// Replays the whole history and expects the same state.
    pub(super) fn replays(&self) {
        let mut fresh = self.definition.create();
        for event in &self.history {
            fresh.apply(event).unwrap();
        }
        assert_eq!(fresh.snapshot(), self.workflow.snapshot());
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.history.is_empty() {
            self.replays();
        }
    }
}

pub(super) fn accepted() -> Verdict {
    Verdict::Accepted(Box::new(AcceptedMessage {
        item: Some(item("said")),
        text: Some(block("said")),
        ..AcceptedMessage::default()
    }))
}

pub(super) fn command(command: SlashCommand) -> Verdict {
    Verdict::Accepted(Box::new(AcceptedMessage { command: Some(command), ..AcceptedMessage::default() }))
}

pub(super) fn not_welcome() -> Verdict {
    Verdict::Refused(CodedError::new(codes::CHANNEL_NOT_A_MEMBER, "not a participant"))
}

pub(super) fn coded(kind: FailureKind, code: ErrorCode) -> ActivityFailure {
    ActivityFailure { code, message: "no luck".to_owned(), kind }
}

fn show(event: &TaskEvent) -> String {
    match event {
        TaskEvent::TaskCreated => "CREATED".to_owned(),
        TaskEvent::StatusChanged(status) => {
            let mut shown = status.state.name().to_owned();
            if let Some(sub_state) = status.sub_state {
                shown.push_str(&format!("/{}", sub_state.name()));
            }
            if let Some(Content::Inline(text)) = &status.text {
                shown.push_str(&format!(" {text:?}"));
            }
            let calls: Vec<String> =
                status.tool_calls.iter().map(|c| format!("{}:{}", c.call_id, c.state.name())).collect();
            if !calls.is_empty() {
                shown.push_str(&format!(" [{}]", calls.join(" ")));
            }
            shown
        }
        TaskEvent::ArtifactChanged(change) => {
            format!("artifact {}{}", change.artifact_id, if change.append { "+" } else { "" })
        }
    }
}

/// The text of a result that the harness wrote itself.
pub(super) fn own_text(data: &TaskData, call: &str) -> String {
    let found = data.fresh.iter().find_map(|item| match &item.body {
        ItemBody::Inline(stored) => match &**stored {
            StoredItem::ToolResult { call_id, parts, .. } if call_id.as_str() == call => match &parts[0] {
                ItemPart::Text(text) => Some(text.clone()),
                ItemPart::Data(_) | ItemPart::Binary { .. } | ItemPart::Link { .. } => None,
            },
            StoredItem::ToolResult { .. } | StoredItem::User { .. } | StoredItem::Model(_) => None,
        },
        ItemBody::Block(_) => None,
    });
    found.unwrap_or_else(|| json!(data.fresh).to_string())
}
