//! `cancel.v1`: a participant stops the task.

use harness_model::{
    CallId, CancelRequest, Content, StatusChange, TaskState, ToolCallState, limits, truncate_chars,
};

use super::{
    apply::Step,
    publishing::summaries,
    state::{CallProgress, Pending, Phase, TaskData},
};

/// Ends the task at once. Work in flight is abandoned; its outcome no longer matters to the task.
pub(super) fn apply(step: &mut Step<'_>, request: &CancelRequest) {
    let in_flight: Vec<Pending> = match &step.data.phase {
        Phase::Waiting | Phase::Ended => Vec::new(),
        Phase::Intake { attempt, .. } | Phase::Modeling { attempt } => vec![attempt.pending.clone()],
        Phase::Tools(round) => round
            .calls
            .iter()
            .filter_map(|slot| match &slot.progress {
                CallProgress::Running(attempt) => Some(attempt.pending.clone()),
                CallProgress::Queued | CallProgress::Done { .. } => None,
            })
            .collect(),
    };
    for pending in &in_flight {
        step.abandon(pending);
    }
    let reason = truncate_chars(&request.reason, limits::TASK_NAME_CHARS_MAX * 4);
    let mut status = StatusChange::to(TaskState::Canceled).with_text(Content::Inline(reason));
    status.tool_calls = summaries(step.data);
    for call in &mut status.tool_calls {
        if call.state == ToolCallState::Running {
            call.state = stopped_state(step.data, &call.call_id);
        }
    }
    step.end(status, false);
}

/// What became of a call that was stopped: nobody knows when it may have changed something.
fn stopped_state(data: &TaskData, call_id: &CallId) -> ToolCallState {
    let Phase::Tools(round) = &data.phase else { return ToolCallState::Canceled };
    match round.calls.iter().find(|slot| slot.call.call_id == *call_id) {
        Some(slot) if slot.may_have_acted() => ToolCallState::OutcomeUnknown,
        Some(_) | None => ToolCallState::Canceled,
    }
}
