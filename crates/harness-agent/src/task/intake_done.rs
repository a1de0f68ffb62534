//! Messages were read: each is welcome or not.

use harness_model::{
    CodedError, Content, InboundMessage, ParticipantRole, StatusChange, SubState, TaskExtension, TaskMode,
    TaskPatch, TaskState, limits, one_line, truncate_chars,
};
use harness_ports::Command;

use super::{
    apply::Step,
    publishing::Publication,
    state::{HeldEnd, Phase, TaskData, own_words},
    turn,
};
use crate::{AcceptedMessage, IntakeResult, ItemDraft, SlashCommand, Verdict};

const COMMANDS: &str = "/complete ends the task, /cancel cancels it, /help lists the commands";

/// What the messages of one intake come to.
#[derive(Debug, Default)]
struct Outcome {
    /// Some message is welcome.
    accepted: bool,
    /// Words for the sender of a command or of a refused message.
    replies: Vec<String>,
    /// The task ends now.
    end: Option<StatusChange>,
}

/// Takes the outcomes in the order of the messages, then goes on with the turn or waits again.
pub(super) fn apply(step: &mut Step<'_>, result: IntakeResult) {
    let Phase::Intake { messages, .. } = step.data.phase else { return };
    let read: Vec<InboundMessage> =
        step.data.mailbox.drain(..messages.min(step.data.mailbox.len())).collect();
    let mut outcome = Outcome::default();
    let mut accepted = Vec::new();
    for (message, verdict) in read.iter().zip(result.outcomes) {
        match verdict.verdict {
            Verdict::Refused(error) => outcome.replies.push(refusal(&error)),
            Verdict::Accepted(content) => {
                accepted.push(message);
                accept(step.data, message, *content, &mut outcome);
            }
        }
    }
    outcome.accepted = !accepted.is_empty();
    if outcome.accepted {
        step.publish(Publication::messages(accepted.into_iter()));
    }
    proceed(step, outcome);
}

fn refusal(error: &CodedError) -> String {
    format!("message not accepted: {}", error.message)
}

fn accept(data: &mut TaskData, message: &InboundMessage, content: AcceptedMessage, outcome: &mut Outcome) {
    if let Some(patch) = content.patch {
        change(data, patch, outcome);
    }
    if let Some(command) = content.command {
        return run_command(data, message, command, outcome);
    }
    if content.answers_help {
        data.pending_help = None;
    }
    let Some(item) = content.item else { return };
    match data.mode {
        TaskMode::Agent => {
            data.latest_message = Some(message.message_id.clone());
            tell(data, item);
        }
        TaskMode::Participant if data.extension.has_role(&message.sender, ParticipantRole::Assignee) => {
            let mut status = StatusChange::to(TaskState::Completed);
            status.text = content.text.map(Content::Block);
            outcome.end.get_or_insert(status);
        }
        TaskMode::Participant => {}
    }
}

/// Gives the model something to read; the turn that was about to end goes on.
fn tell(data: &mut TaskData, item: ItemDraft) {
    data.remember(item);
    data.unread = true;
    data.held = None;
}

/// Changes the task as a message asks for. A question to somebody who leaves would stay open for ever: it is withdrawn.
fn change(data: &mut TaskData, patch: TaskPatch, outcome: &mut Outcome) {
    let mut changed = data.extension.clone();
    patch.apply(&mut changed);
    let bytes =
        |extension: &TaskExtension| serde_json::to_vec(extension).map_or(usize::MAX, |json| json.len());
    let (before, bytes) = (bytes(&data.extension), bytes(&changed));
    if bytes > limits::EXTENSION_BYTES_MAX.max(before) {
        let max = limits::EXTENSION_BYTES_MAX;
        outcome.replies.push(format!("task not changed: it would have {bytes} bytes and may have {max}"));
        return;
    }
    data.extension = changed;
    let asked = data.pending_help.as_ref().map(|help| help.participant_id.clone());
    if let Some(asked) = asked.filter(|id| data.extension.participant(id).is_none()) {
        data.pending_help = None;
        let asked = one_line(asked.as_str());
        let text =
            format!("{asked} does not take part in this task any more; the question stays unanswered.");
        tell(data, own_words(text));
    }
}

fn run_command(data: &TaskData, message: &InboundMessage, command: SlashCommand, outcome: &mut Outcome) {
    match command {
        SlashCommand::Complete => {
            let mut status = StatusChange::to(TaskState::Completed);
            status.text = Some(
                data.last_answer
                    .clone()
                    .unwrap_or_else(|| Content::Inline(format!("completed by {}", message.sender))),
            );
            outcome.end.get_or_insert(status);
        }
        SlashCommand::Cancel => {
            let text = Content::Inline(format!("canceled by {}", message.sender));
            outcome.end.get_or_insert(StatusChange::to(TaskState::Canceled).with_text(text));
        }
        SlashCommand::Help => outcome.replies.push(COMMANDS.to_owned()),
        SlashCommand::Unknown(name) => outcome.replies.push(format!("no command /{name}; {COMMANDS}")),
    }
}

fn proceed(step: &mut Step<'_>, outcome: Outcome) {
    if let Some(status) = outcome.end {
        return step.end(status, false);
    }
    let data = &mut *step.data;
    let words: Vec<String> = data.reply.take().into_iter().chain(outcome.replies).collect();
    let reply = (!words.is_empty()).then(|| truncate_chars(&words.join("\n"), limits::INLINE_BYTES_MAX / 4));
    if data.unread || data.status.state == TaskState::Working {
        if let Some(reply) = reply {
            step.say(StatusChange::to(TaskState::Working).with_text(Content::Inline(reply)), false);
        }
        return match step.data.held.take() {
            Some(HeldEnd { status, said }) => turn::end_turn(step, status, said),
            None => turn::begin(step),
        };
    }
    if !data.mailbox.is_empty() {
        data.reply = reply;
        return turn::begin_intake(step);
    }
    let reply = reply.map(Content::Inline);
    if data.is_untouched() && !outcome.accepted && reply.is_some() {
        let mut status = StatusChange::to(TaskState::Rejected);
        status.text = reply;
        return step.end(status, false);
    }
    wait_on(step, reply);
}

/// The task waits on as before, with an answer for whoever wrote.
fn wait_on(step: &mut Step<'_>, reply: Option<Content>) {
    let mut status = step.data.status.clone();
    if step.data.is_untouched() {
        status = StatusChange::to(TaskState::InputRequired);
        status.sub_state = Some(SubState::AwaitingNextMessage);
    }
    status.text = reply.or(status.text);
    step.data.phase = Phase::Waiting;
    step.say(status, false);
    step.commands.push(Command::Checkpoint);
}
