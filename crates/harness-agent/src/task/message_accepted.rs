//! `message.v1`: a participant says something.

use harness_model::InboundMessage;

use super::{apply::Step, state::Phase, tool_ended, turn};

/// A message always waits in the mailbox first. It is read at once when nothing is in flight, at the next turn
/// otherwise; with the interrupt mark it ends the turn that runs.
pub(super) fn apply(step: &mut Step<'_>, message: InboundMessage) {
    let interrupt = message.interrupt;
    step.data.mailbox.push_back(message);
    match &step.data.phase {
        Phase::Waiting => turn::begin_intake(step),
        Phase::Modeling { attempt } if interrupt => {
            let pending = attempt.pending.clone();
            step.abandon(&pending);
            turn::begin_intake(step);
        }
        Phase::Tools(_) if interrupt => tool_ended::interrupt(step),
        // Messages that are being read are no turn yet: there is nothing to interrupt.
        Phase::Intake { .. } | Phase::Modeling { .. } | Phase::Tools(_) | Phase::Ended => {}
    }
}
