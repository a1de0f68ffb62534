//! Messages were read: each is welcome or not.

use harness_model::{
    CodedError, Content, InboundMessage, ParticipantRole, StatusChange, TaskMode, TaskState, limits,
    truncate_chars,
};

use super::{
    apply::Step,
    publishing::Publication,
    state::{Phase, TaskData},
    turn,
};
use crate::{AcceptedMessage, IntakeResult, SlashCommand, Verdict};

const COMMANDS: &str = "/complete ends the task, /cancel cancels it, /help lists the commands";

/// What the messages of one intake come to.
#[derive(Debug, Default)]
struct Outcome {
    /// Something for the model to read.
    news: bool,
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
    if !accepted.is_empty() {
        step.publish(Publication::messages(accepted.into_iter()));
    }
    proceed(step, outcome);
}

fn refusal(error: &CodedError) -> String {
    format!("message not accepted: {}", error.message)
}

fn accept(data: &mut TaskData, message: &InboundMessage, content: AcceptedMessage, outcome: &mut Outcome) {
    if let Some(patch) = content.patch {
        patch.apply(&mut data.extension);
    }
    if let Some(command) = content.command {
        return run_command(data, message, command, outcome);
    }
    if content.answers_help {
        data.pending_help = None;
    }
    let Some(item) = content.item else { return };
    data.latest_message = Some(message.message_id.clone());
    data.remember(item);
    match data.mode {
        TaskMode::Agent => outcome.news = true,
        TaskMode::Participant if data.extension.has_role(&message.sender, ParticipantRole::Assignee) => {
            let mut status = StatusChange::to(TaskState::Completed);
            status.text = content.text.map(Content::Block);
            outcome.end.get_or_insert(status);
        }
        TaskMode::Participant => {}
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
        return step.end(status);
    }
    let reply = (!outcome.replies.is_empty())
        .then(|| Content::Inline(truncate_chars(&outcome.replies.join("\n"), limits::INLINE_BYTES_MAX / 4)));
    if outcome.news || step.data.status.state == TaskState::Working {
        if let Some(reply) = reply {
            step.say(StatusChange::to(TaskState::Working).with_text(reply), false);
        }
        return turn::begin(step);
    }
    if !step.data.mailbox.is_empty() {
        return turn::begin_intake(step);
    }
    if step.data.is_untouched() && step.data.fresh.is_empty() && reply.is_some() {
        let mut status = StatusChange::to(TaskState::Rejected);
        status.text = reply;
        return step.end(status);
    }
    // The task waits on as before, with an answer for whoever wrote.
    let mut status = step.data.status.clone();
    status.text = reply.or(status.text);
    if step.data.is_untouched() {
        status = StatusChange::to(TaskState::InputRequired);
        status.sub_state = Some(harness_model::SubState::AwaitingNextMessage);
    }
    step.data.phase = Phase::Waiting;
    step.say(status, false);
    step.commands.push(harness_ports::Command::Checkpoint);
}
