//! `Started`: the task exists.

use std::collections::VecDeque;

use harness_model::{
    Content, Lifecycle, StatusChange, SubState, TaskEvent, TaskMode, TaskState, TaskUsage, Timestamp,
};
use harness_ports::Command;

use super::{
    TaskInput,
    apply::Step,
    publishing::Publication,
    state::{Phase, SNAPSHOT_FORMAT, TaskData},
    turn,
};

/// The first state of a task, and what it asks for.
pub(super) fn apply(input: TaskInput, now: Timestamp) -> (TaskData, Vec<Command>) {
    let TaskInput { start, settings } = input;
    let awaits_message = start.awaits_message;
    let mut data = TaskData {
        format: SNAPSHOT_FORMAT,
        task_id: start.task_id,
        context_id: start.context_id,
        agent_id: start.agent_id,
        lifecycle: start.lifecycle,
        mode: start.mode,
        model: start.model,
        reasoning_effort: start.reasoning_effort,
        depth: start.depth,
        settings,
        created_at: now,
        extension: start.extension,
        status: StatusChange::to(TaskState::Submitted),
        status_at: now,
        phase: Phase::Waiting,
        mailbox: VecDeque::new(),
        pending_help: None,
        unread: false,
        reply: None,
        help_unseen: false,
        held: None,
        manifest: None,
        fresh: Vec::new(),
        next_item: 1,
        skills: Vec::new(),
        latest_message: None,
        last_answer: None,
        turn: 0,
        run_turns: 0,
        measured: None,
        usage: TaskUsage::default(),
        acted: false,
        next_operation: 0,
    };
    let mut step = Step { data: &mut data, now, commands: Vec::new() };
    step.publish(Publication::event(TaskEvent::TaskCreated));
    match (step.data.mode, awaits_message, step.data.lifecycle) {
        (TaskMode::Participant, _, _) => wait_for_assignee(&mut step),
        (TaskMode::Agent, true, Lifecycle::Conversation) => {
            let mut status = StatusChange::to(TaskState::InputRequired);
            status.sub_state = Some(SubState::AwaitingNextMessage);
            step.end_of_turn(status, false);
            step.commands.push(Command::Checkpoint);
        }
        (TaskMode::Agent, true, Lifecycle::Delegated) => turn::begin(&mut step),
        (TaskMode::Agent, false, _) => {}
    }
    let commands = step.commands;
    (data, commands)
}

/// A task that a person works on: it says what is to be done and waits.
fn wait_for_assignee(step: &mut Step<'_>) {
    let goal = harness_model::truncate_chars(
        &step.data.extension.goal,
        harness_model::limits::TASK_NAME_CHARS_MAX * 8,
    );
    step.end_of_turn(StatusChange::to(TaskState::InputRequired).with_text(Content::Inline(goal)), false);
    step.commands.push(Command::Checkpoint);
}
