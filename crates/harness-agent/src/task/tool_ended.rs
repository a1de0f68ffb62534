//! Tool calls: they begin in the order of the model, run together when all of them may be repeated, and each ends with
//! exactly one result for the model.

use harness_model::{CodedError, StatusChange, TaskState, ToolCallState, codes};
use harness_ports::{ActivityFailure, FailureKind, OnCrash};

use super::{
    apply::Step,
    own_change,
    state::{Attempt, CallProgress, CallSlot, Pending, Phase, ToolRound, own_result},
    turn,
};
use crate::{CallAction, INVOKE_TOOL, InvokeToolInput, ToolChange, ToolResultFacts};

/// Begins what can begin now; when every call has its result, ends the round.
pub(super) fn advance(step: &mut Step<'_>) {
    let mut begun = false;
    while let Some(index) = next_queued(step) {
        begun = true;
        begin(step, index);
    }
    let Phase::Tools(round) = &step.data.phase else { return };
    if round.calls.iter().all(CallSlot::is_done) {
        return finish(step);
    }
    if begun {
        step.working();
    }
}

/// The next call that may begin: any in a parallel round, otherwise the first one once all before it have ended.
fn next_queued(step: &Step<'_>) -> Option<usize> {
    let Phase::Tools(round) = &step.data.phase else { return None };
    let index = round.calls.iter().position(|slot| slot.progress == CallProgress::Queued)?;
    let before_are_done = round.calls[..index].iter().all(CallSlot::is_done);
    (round.parallel || before_are_done).then_some(index)
}

fn begin(step: &mut Step<'_>, index: usize) {
    let now = step.now;
    let rejected = matches!(&step.data.phase, Phase::Tools(round) if round.rejected.is_some());
    let Some(slot) = slot_mut(step, index) else { return };
    slot.started_at = Some(now);
    match slot.call.action.clone() {
        CallAction::Tool { .. } if rejected => {
            let progress = failed_call(slot, &not_begun(), ToolCallState::Canceled);
            end_call(step, index, progress);
        }
        CallAction::Tool { .. } => try_tool(step, index, 1),
        CallAction::Intrinsic(request) => {
            let call = slot.call.clone();
            let (item, state) = own_change::apply(step, &call, request);
            end_call(step, index, CallProgress::Done { item, state });
        }
        CallAction::Refused(error) => {
            let progress = failed_call(slot, &error, ToolCallState::Failed);
            end_call(step, index, progress);
        }
    }
}

/// Schedules one try of a tool call.
fn try_tool(step: &mut Step<'_>, index: usize, number: u32) {
    let turn = step.data.turn;
    let task_id = step.data.task_id.clone();
    let timeout_ms = step.data.settings.tool_timeout_ms;
    let Some(slot) = slot_mut(step, index) else { return };
    let CallAction::Tool { arguments, idempotent, read_only, deduplicates } = slot.call.action.clone() else {
        return;
    };
    let input = InvokeToolInput {
        idempotency_key: format!("{task_id}/{turn}/{index}"),
        task_id,
        turn,
        call_id: slot.call.call_id.clone(),
        name: slot.call.name.clone(),
        arguments,
        timeout_ms,
    };
    let repeatable = idempotent || deduplicates;
    let on_crash = if repeatable { OnCrash::Rerun } else { OnCrash::ReportUnknown };
    if !read_only {
        step.data.acted = true;
    }
    // The tool reports its own time-out; the engine's comes later and only for an activity that is stuck.
    let activity = step.schedule(INVOKE_TOOL, &input, timeout_ms.saturating_add(5_000), on_crash);
    if let Some(slot) = slot_mut(step, index) {
        slot.progress = CallProgress::Running(Attempt { number, pending: Pending::Activity(activity) });
    }
}

/// The wait before the next try is over.
pub(super) fn retry(step: &mut Step<'_>, index: usize) {
    let Some(slot) = slot_mut(step, index) else { return };
    let CallProgress::Running(attempt) = &slot.progress else { return };
    let number = attempt.number + 1;
    try_tool(step, index, number);
}

/// A tool gave its result.
pub(super) fn succeeded(step: &mut Step<'_>, index: usize, result: ToolResultFacts) {
    match result.change {
        Some(ToolChange::SkillLoaded(skill)) => {
            step.data.skills.retain(|loaded| loaded.name != skill.name);
            step.data.skills.push(skill);
        }
        Some(ToolChange::SkillUnloaded { name }) => step.data.skills.retain(|skill| skill.name != name),
        None => {}
    }
    let state = if result.is_error { ToolCallState::Failed } else { ToolCallState::Succeeded };
    end_call(step, index, CallProgress::Done { item: result.item, state });
    after_end(step);
}

/// A try gave no result: another try when the call may be repeated, otherwise an error for the model to read.
pub(super) fn failed(step: &mut Step<'_>, index: usize, failure: &ActivityFailure) {
    let policy = step.data.settings.retries.policy(INVOKE_TOOL).clone();
    let Some(slot) = slot_mut(step, index) else { return };
    let CallProgress::Running(attempt) = &slot.progress else { return };
    let number = attempt.number;
    slot.uncertain |= matches!(failure.kind, FailureKind::TimedOut | FailureKind::OutcomeUnknown);
    let unknown = slot.uncertain && slot.may_have_acted();
    let repeatable = match slot.call.action {
        CallAction::Tool { idempotent, deduplicates, .. } => idempotent || deduplicates,
        CallAction::Intrinsic(_) | CallAction::Refused(_) => false,
    };
    let after = match failure.kind {
        FailureKind::Retryable { after_ms } => Some(after_ms),
        FailureKind::TimedOut | FailureKind::OutcomeUnknown => Some(None),
        FailureKind::Fatal | FailureKind::Canceled => None,
    };
    let listed = policy.non_retryable_error_types.iter().any(|code| code == failure.code.as_str());
    if let (Some(after_ms), true, false) = (after, repeatable && number < policy.maximum_attempts, listed) {
        let pending = step.back_off(INVOKE_TOOL, number, after_ms);
        if let Some(slot) = slot_mut(step, index) {
            slot.progress = CallProgress::Running(Attempt { number, pending });
        }
        return;
    }
    let (error, state) = verdict(failure, repeatable, unknown, &slot.call.name);
    let progress = failed_call(slot, &error, state);
    end_call(step, index, progress);
    after_end(step);
}

/// What the model reads about a call that failed for good; `unknown` when an earlier try of it may have acted.
fn verdict(
    failure: &ActivityFailure,
    repeatable: bool,
    unknown: bool,
    tool: &str,
) -> (CodedError, ToolCallState) {
    match failure.kind {
        kind if unknown || matches!(kind, FailureKind::TimedOut | FailureKind::OutcomeUnknown) => (
            CodedError::new(
                codes::TOOL_OUTCOME_UNKNOWN,
                format!(
                    "nobody knows whether {tool} took effect ({}); find out before you call it again",
                    failure.message
                ),
            ),
            ToolCallState::OutcomeUnknown,
        ),
        FailureKind::Retryable { .. } if !repeatable => (
            CodedError::new(codes::TOOL_NOT_RETRIED, format!("{tool} did not run: {}", failure.message)),
            ToolCallState::Failed,
        ),
        FailureKind::Retryable { .. }
        | FailureKind::TimedOut
        | FailureKind::OutcomeUnknown
        | FailureKind::Fatal
        | FailureKind::Canceled => {
            (CodedError::new(failure.code.clone(), failure.message.clone()), ToolCallState::Failed)
        }
    }
}

/// Stops the round for a message that will not wait. Results that are there stay; the rest get an honest one.
pub(super) fn interrupt(step: &mut Step<'_>) {
    let Phase::Tools(round) = &step.data.phase else { return };
    for index in 0..round.calls.len() {
        let Some(slot) = slot_mut(step, index) else { return };
        let may_have_acted = slot.may_have_acted();
        let (pending, error, state) = match &slot.progress {
            CallProgress::Done { .. } => continue,
            CallProgress::Queued => (None, not_run(), ToolCallState::Canceled),
            CallProgress::Running(attempt) if may_have_acted => (
                Some(attempt.pending.clone()),
                stopped_unknown(&slot.call.name),
                ToolCallState::OutcomeUnknown,
            ),
            CallProgress::Running(attempt) => {
                (Some(attempt.pending.clone()), not_run(), ToolCallState::Canceled)
            }
        };
        let progress = failed_call(slot, &error, state);
        if let Some(pending) = pending {
            step.abandon(&pending);
        }
        end_call(step, index, progress);
    }
    finish(step);
}

/// A task that is refused has no effect, so nothing is begun after the refusal.
fn not_begun() -> CodedError {
    CodedError::new(codes::TOOL_INTERRUPTED, "not run: the task is refused by an earlier call")
}

fn not_run() -> CodedError {
    CodedError::new(codes::TOOL_INTERRUPTED, "stopped by a new message before it had a result")
}

fn stopped_unknown(tool: &str) -> CodedError {
    let text =
        format!("{tool} was stopped while it ran; find out whether it took effect before you call it again");
    CodedError::new(codes::TOOL_OUTCOME_UNKNOWN, text)
}

fn after_end(step: &mut Step<'_>) {
    let open = matches!(&step.data.phase, Phase::Tools(round) if !round.calls.iter().all(CallSlot::is_done));
    let queued = next_queued(step).is_some();
    if open && !queued {
        step.working();
    }
    advance(step);
}

/// Every call has its result: they enter the conversation in the order of the calls, and the task goes on.
fn finish(step: &mut Step<'_>) {
    step.working();
    let Phase::Tools(round) = std::mem::replace(&mut step.data.phase, Phase::Waiting) else { return };
    let ToolRound { calls, asked, rejected, .. } = round;
    for slot in calls {
        if let CallProgress::Done { item, .. } = slot.progress {
            step.data.remember(item);
        }
    }
    if let Some(reason) = rejected {
        return turn::end_turn(step, StatusChange::to(TaskState::Rejected).with_text(reason), false);
    }
    if let Some(help) = asked {
        step.data.pending_help = Some(help);
        step.data.help_unseen = true;
        let question = turn::question(step.data);
        return turn::end_turn(step, question, false);
    }
    turn::begin(step);
}

fn failed_call(slot: &CallSlot, error: &CodedError, state: ToolCallState) -> CallProgress {
    let item = own_result(&slot.call.call_id, &slot.call.name, true, error.to_string());
    CallProgress::Done { item, state }
}

fn end_call(step: &mut Step<'_>, index: usize, progress: CallProgress) {
    let now = step.now;
    if let Some(slot) = slot_mut(step, index) {
        slot.duration_ms =
            slot.started_at.map(|at| u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX));
        slot.progress = progress;
    }
}

fn slot_mut<'a>(step: &'a mut Step<'_>, index: usize) -> Option<&'a mut CallSlot> {
    match &mut step.data.phase {
        Phase::Tools(round) => round.calls.get_mut(index),
        Phase::Waiting | Phase::Intake { .. } | Phase::Modeling { .. } | Phase::Ended => None,
    }
}
