//! The course of a turn: intake when messages wait, then the model, then its calls, then the end or the next turn.

use std::time::Duration;

use harness_model::{
    ActivityId, ArtifactId, Content, Lifecycle, StatusChange, SubState, TaskState, TimerId, codes, limits,
};
use harness_ports::{ActivityOptions, ActivityTask, Command, OnCrash};
use serde::Serialize;
use serde_json::Value;

use super::{
    apply::Step,
    state::{Attempt, HeldEnd, Pending, Phase, TaskData},
};
use crate::{INTAKE, INVOKE_MODEL, IntakeInput, InvokeModelInput};

impl Attempt {
    pub(super) fn waits_for(&self, id: &ActivityId) -> bool {
        matches!(&self.pending, Pending::Activity(pending) if pending == id)
    }

    pub(super) fn backs_off(&self, id: &TimerId) -> bool {
        matches!(&self.pending, Pending::Backoff(pending) if pending == id)
    }
}

impl Step<'_> {
    /// Asks for an activity and returns its id.
    pub(super) fn schedule(
        &mut self,
        name: &str,
        input: &impl Serialize,
        timeout_ms: u64,
        on_crash: OnCrash,
    ) -> ActivityId {
        let bare = name.split('.').next().unwrap_or(name);
        let activity_id = ActivityId::new(format!("{bare}-{}", self.data.operation()));
        self.commands.push(Command::ScheduleActivity(ActivityTask {
            activity_id: activity_id.clone(),
            name: name.to_owned(),
            // Inputs are plain structs, strings and numbers: they always serialize.
            input: serde_json::to_value(input).unwrap_or(Value::Null),
            options: ActivityOptions { start_to_close: Duration::from_millis(timeout_ms), on_crash },
            trace: None,
        }));
        activity_id
    }

    /// Waits before the next try of an operation that failed `number` times.
    pub(super) fn back_off(&mut self, activity: &str, number: u32, at_least: Option<u64>) -> Pending {
        let operation = self.data.operation();
        let timer_id = TimerId::new(format!("retry-{operation}"));
        let seed = format!("{}/{operation}", self.data.task_id);
        let delay = self.data.settings.retries.policy(activity).delay(number, &seed);
        let after = delay.max(Duration::from_millis(at_least.unwrap_or(0)));
        self.commands.push(Command::StartTimer { timer_id: timer_id.clone(), after });
        Pending::Backoff(timer_id)
    }

    /// Gives up whatever an attempt waits for.
    pub(super) fn abandon(&mut self, pending: &Pending) {
        self.commands.push(match pending {
            Pending::Activity(id) => Command::CancelActivity(id.clone()),
            Pending::Backoff(id) => Command::CancelTimer(id.clone()),
        });
    }
}

/// What comes next when nothing is in flight and the task has work: waiting messages first, then the model.
pub(super) fn begin(step: &mut Step<'_>) {
    if step.data.mailbox.is_empty() { begin_model(step) } else { begin_intake(step) }
}

/// Reads the messages that wait, as many at once as one recorded result may speak of.
pub(super) fn begin_intake(step: &mut Step<'_>) {
    let messages = step.data.mailbox.len().min(limits::INTAKE_MESSAGES_MAX);
    let attempt = Attempt { number: 1, pending: schedule_intake(step, messages) };
    step.data.phase = Phase::Intake { messages, attempt };
}

fn schedule_intake(step: &mut Step<'_>, messages: usize) -> Pending {
    let data = &*step.data;
    let input = IntakeInput {
        task_id: data.task_id.clone(),
        context_id: data.context_id.clone(),
        participants: data.extension.participants.clone(),
        pending_help: data.pending_help.clone().filter(|_| !data.help_unseen),
        messages: data.mailbox.iter().take(messages).cloned().collect(),
    };
    let timeout_ms = data.settings.activity_timeout_ms;
    Pending::Activity(step.schedule(INTAKE, &input, timeout_ms, OnCrash::Rerun))
}

/// Tries to read the messages again.
pub(super) fn retry_intake(step: &mut Step<'_>) {
    let Phase::Intake { messages, attempt } = &step.data.phase else { return };
    let (messages, number) = (*messages, attempt.number + 1);
    let attempt = Attempt { number, pending: schedule_intake(step, messages) };
    step.data.phase = Phase::Intake { messages, attempt };
}

fn begin_model(step: &mut Step<'_>) {
    let spent = step.data.usage.tokens();
    if let Some(budget) = step.data.settings.token_budget.filter(|budget| spent >= *budget) {
        let message = format!("the task used {spent} tokens and may use {budget} (budget.task_tokens)");
        return fail(step, codes::BUDGET_EXHAUSTED.as_str(), &message);
    }
    if step.data.run_turns >= step.data.settings.max_turns {
        return fail(step, codes::TURN_LIMIT.as_str(), "turn limit reached");
    }
    step.data.held = None;
    step.data.unread = false;
    step.data.turn += 1;
    step.data.run_turns += 1;
    if step.data.status.state != TaskState::Working {
        step.working();
    }
    let attempt = Attempt { number: 1, pending: schedule_model(step, 1) };
    step.data.phase = Phase::Modeling { attempt };
}

fn schedule_model(step: &mut Step<'_>, number: u32) -> Pending {
    let data = &*step.data;
    let input = InvokeModelInput {
        task_id: data.task_id.clone(),
        agent_id: data.agent_id.clone(),
        turn: data.turn,
        attempt: number,
        artifact_id: answer_artifact(data.turn),
        extension: data.extension.clone(),
        state: data.status.state,
        skills: data.skills.clone(),
        manifest: data.manifest.clone(),
        fresh: data.fresh.clone(),
        latest_message: data.latest_message.clone(),
        model: data.model.clone(),
        reasoning_effort: data.reasoning_effort.clone(),
        measured: data.measured,
    };
    let timeout_ms = data.settings.model_timeout_ms;
    Pending::Activity(step.schedule(INVOKE_MODEL, &input, timeout_ms, OnCrash::Rerun))
}

/// Asks the model again.
pub(super) fn retry_model(step: &mut Step<'_>) {
    let Phase::Modeling { attempt } = &step.data.phase else { return };
    let number = attempt.number + 1;
    let attempt = Attempt { number, pending: schedule_model(step, number) };
    step.data.phase = Phase::Modeling { attempt };
}

/// Beginning of the ids of answers; the turn follows.
pub(super) const ANSWER_ARTIFACT: &str = "answer-";

/// The artifact that carries the answer of a turn.
pub(super) fn answer_artifact(turn: u32) -> ArtifactId {
    ArtifactId::new(format!("{ANSWER_ARTIFACT}{turn}"))
}

/// An answer without calls ends the turn: with the open question, parked, or completed.
pub(super) fn answered(step: &mut Step<'_>, text: Option<Content>) {
    let status = match step.data.lifecycle {
        Lifecycle::Conversation => {
            let mut status = StatusChange::to(TaskState::InputRequired);
            status.sub_state = Some(SubState::AwaitingNextMessage);
            status
        }
        Lifecycle::Delegated => StatusChange::to(TaskState::Completed),
    };
    answered_with(step, text.clone(), StatusChange { text, ..status });
}

/// An answer without calls ends the turn with `status`, or with the open question.
pub(super) fn answered_with(step: &mut Step<'_>, text: Option<Content>, status: StatusChange) {
    step.data.last_answer = text.clone().or_else(|| step.data.last_answer.clone());
    step.data.run_turns = 0;
    let asks = step.data.pending_help.is_some();
    let said = !step.data.mailbox.is_empty() || asks;
    if let (Some(text), true) = (text, said) {
        step.say(StatusChange::to(TaskState::Working).with_text(text), true);
    }
    if asks {
        let question = question(step.data);
        return end_turn(step, question, false);
    }
    end_turn(step, status, said);
}

/// Ends the turn, once the messages that came during it are read; `said` words are in the history already.
pub(super) fn end_turn(step: &mut Step<'_>, status: StatusChange, said: bool) {
    if !step.data.mailbox.is_empty() {
        step.data.held = Some(HeldEnd { status, said });
        return begin_intake(step);
    }
    step.data.held = None;
    if status.state.is_terminal() {
        return step.end(status, said);
    }
    step.data.help_unseen &= status.help.is_none();
    step.data.phase = Phase::Waiting;
    step.data.run_turns = 0;
    step.end_of_turn(status, said);
    step.commands.push(Command::Checkpoint);
}

/// The open question, asked or asked again.
pub(super) fn question(data: &TaskData) -> StatusChange {
    let mut status = StatusChange::to(TaskState::InputRequired);
    status.text = data.pending_help.as_ref().map(|help| help.question.clone());
    status.help.clone_from(&data.pending_help);
    status
}

/// The task cannot go on.
pub(super) fn fail(step: &mut Step<'_>, code: &str, message: &str) {
    let text =
        if code == codes::TURN_LIMIT.as_str() { message.to_owned() } else { format!("[{code}] {message}") };
    let text = harness_model::truncate_chars(&text, harness_model::limits::INLINE_BYTES_MAX / 4);
    step.end(StatusChange::to(TaskState::Failed).with_text(Content::Inline(text)), false);
}
