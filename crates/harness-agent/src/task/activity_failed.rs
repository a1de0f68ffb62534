//! Reading messages or asking the model failed.

use harness_model::codes;
use harness_ports::{ActivityFailure, FailureKind};

use super::{
    apply::Step,
    state::{Attempt, Phase},
    turn,
};
use crate::{INTAKE, INVOKE_MODEL};

/// Another try after a wait, as the policy says; otherwise the task has failed.
pub(super) fn apply(step: &mut Step<'_>, failure: &ActivityFailure) {
    let (name, number) = match &step.data.phase {
        Phase::Intake { attempt, .. } => (INTAKE, attempt.number),
        Phase::Modeling { attempt } => (INVOKE_MODEL, attempt.number),
        Phase::Waiting | Phase::Tools(_) | Phase::Ended => return,
    };
    let policy = step.data.settings.retries.policy(name);
    let listed = policy.non_retryable_error_types.iter().any(|code| code == failure.code.as_str());
    let after = match failure.kind {
        FailureKind::Retryable { after_ms } => Some(after_ms),
        // Both operations repeat no effect, so an unknown end is as good as a failed try.
        FailureKind::TimedOut | FailureKind::OutcomeUnknown => Some(None),
        FailureKind::Fatal | FailureKind::Canceled => None,
    };
    // An empty answer is as good as deterministic: one more try, whatever the policy says.
    let tries = if failure.code == codes::PROVIDER_EMPTY { 2 } else { u32::MAX };
    match after {
        Some(after_ms) if !listed && number < policy.maximum_attempts.min(tries) => {
            let pending = step.back_off(name, number, after_ms);
            match &mut step.data.phase {
                Phase::Intake { attempt, .. } | Phase::Modeling { attempt } => {
                    *attempt = Attempt { number, pending }
                }
                Phase::Waiting | Phase::Tools(_) | Phase::Ended => {}
            }
        }
        Some(_) | None => {
            let bare = name.split('.').next().unwrap_or(name);
            let message = format!("{bare} failed after {number} attempt(s): {}", failure.message);
            turn::fail(step, failure.code.as_str(), &message);
        }
    }
}
