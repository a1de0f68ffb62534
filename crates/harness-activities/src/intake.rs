//! `intake.v1`: who speaks, what it means, whether it is welcome; kept together with its audit row.

use harness_agent::{
    AcceptedMessage, IntakeInput, IntakeOutcome, IntakeResult, ItemDraft, Verdict,
    intake::{IntakeDecision, IntakeFacts, decide},
};
use harness_model::{
    CodedError, InboundMessage, ItemBody, Message, Participant, TaskExtension, TaskId, codes, limits,
    truncate_chars,
};
use harness_ports::{ActivityFailure, Record, RecordKind};
use serde_json::json;

use crate::{
    activities::Host,
    blocks::{self, Keep},
};

/// Bytes of the change that one message may ask for. The change is recorded, unlike the words.
const PATCH_BYTES_MAX: usize = 32_768;
/// Characters of the reason of a refusal; it repeats what came from outside.
const REASON_CHARS_MAX: usize = 400;
/// Characters that it shrinks to when many messages are read at once.
const SHORT_REASON_CHARS: usize = 60;

pub(crate) async fn run(host: &Host, input: IntakeInput) -> Result<IntakeResult, ActivityFailure> {
    let store = &*host.deps.store;
    let reads = input.messages.iter().map(|message| blocks::json::<Message>(store, &message.block)).collect();
    let messages = blocks::all(reads).await?;
    let mut question = None;
    if let Some(help) = input.pending_help {
        let text = blocks::content(store, &help.question).await?;
        question = Some((help, text));
    }
    let mut keep = Keep::of(&input.task_id);
    let mut participants = input.participants;
    let mut outcomes = Vec::with_capacity(messages.len());
    for (inbound, message) in input.messages.iter().zip(&messages) {
        let facts = IntakeFacts {
            participants: &participants,
            pending_help: question.as_ref().map(|(help, text)| (help, text.as_str())),
        };
        let decided = decide(message, &inbound.sender, facts).and_then(bounded);
        let verdict = match decided {
            Err(error) => Verdict::Refused(shortened(error, REASON_CHARS_MAX)),
            Ok(decision) => {
                // What a message changes is in force for the ones after it.
                if decision.answers_help {
                    question = None;
                }
                participants = patched(participants, &decision);
                Verdict::Accepted(Box::new(accepted(decision, &mut keep)?))
            }
        };
        outcomes.push(IntakeOutcome { message_id: inbound.message_id.clone(), verdict });
    }
    let result = within_history(IntakeResult { outcomes });
    for (inbound, outcome) in input.messages.iter().zip(&result.outcomes) {
        keep.record(audit(&input.task_id, inbound, &outcome.verdict));
    }
    keep.commit(store, &*host.deps.clock).await?;
    Ok(result)
}

fn shortened(mut error: CodedError, chars: usize) -> CodedError {
    error.message = truncate_chars(&error.message, chars);
    error
}

/// Refuses a change that is too large to be recorded.
fn bounded(decision: IntakeDecision) -> Result<IntakeDecision, CodedError> {
    let bytes = decision.patch.as_ref().map_or(0, json_bytes);
    if bytes > PATCH_BYTES_MAX {
        let text = format!("the task envelope has {bytes} bytes and may have {PATCH_BYTES_MAX}; shorten it");
        return Err(CodedError::new(codes::STATE_INVALID, text));
    }
    Ok(decision)
}

fn patched(participants: Vec<Participant>, decision: &IntakeDecision) -> Vec<Participant> {
    let Some(patch) = decision.patch.clone() else { return participants };
    let mut extension = TaskExtension { participants, ..TaskExtension::default() };
    patch.apply(&mut extension);
    extension.participants
}

fn accepted(decision: IntakeDecision, keep: &mut Keep) -> Result<AcceptedMessage, ActivityFailure> {
    let item = match decision.item {
        Some(item) => Some(ItemDraft { chars: item.chars(), body: ItemBody::Block(keep.json(&item)?) }),
        None => None,
    };
    let text = (!decision.text.is_empty()).then(|| keep.bytes(decision.text));
    Ok(AcceptedMessage {
        item,
        text,
        patch: decision.patch,
        answers_help: decision.answers_help,
        command: decision.command,
    })
}

/// One row per message, the same in every run.
fn audit(task_id: &TaskId, inbound: &InboundMessage, verdict: &Verdict) -> Record {
    let refusal = match verdict {
        Verdict::Refused(error) => Some(error),
        Verdict::Accepted(_) => None,
    };
    Record {
        kind: RecordKind::InboxAudit,
        id: format!("{task_id}/{}", inbound.dedupe_key()),
        task_id: task_id.clone(),
        value: json!({
            "message_id": inbound.message_id,
            "participant_id": inbound.sender,
            "accepted": refusal.is_none(),
            "reason": refusal.map(ToString::to_string),
        }),
    }
}

/// Keeps the recorded result within the limit: first without the plain texts, which only tasks of people need and the
/// items repeat, then with refusals in few words, then without the largest changes, which are refused. Whoever wrote is never answered with silence.
fn within_history(mut result: IntakeResult) -> IntakeResult {
    let fits = |result: &IntakeResult| json_bytes(result) <= limits::HISTORY_PAYLOAD_BYTES_MAX;
    if fits(&result) {
        return result;
    }
    for outcome in &mut result.outcomes {
        if let Verdict::Accepted(accepted) = &mut outcome.verdict {
            accepted.text = accepted.text.take().filter(|_| accepted.item.is_none());
        }
    }
    if !fits(&result) {
        for outcome in &mut result.outcomes {
            if let Verdict::Refused(error) = &mut outcome.verdict {
                error.message = truncate_chars(&error.message, SHORT_REASON_CHARS);
            }
        }
    }
    while !fits(&result) {
        let largest = result.outcomes.iter_mut().max_by_key(|outcome| patch_bytes(outcome));
        let Some(outcome) = largest.filter(|outcome| patch_bytes(outcome) > 0) else {
            tracing::warn!(
                messages = result.outcomes.len(),
                "one intake has more to record than a history should hold"
            );
            break;
        };
        let text = "too many changes of the task arrived at once; send this one again";
        outcome.verdict = Verdict::Refused(CodedError::new(codes::INBOX_FULL, text));
    }
    result
}

fn patch_bytes(outcome: &IntakeOutcome) -> usize {
    match &outcome.verdict {
        Verdict::Accepted(accepted) => accepted.patch.as_ref().map_or(0, json_bytes),
        Verdict::Refused(_) => 0,
    }
}

fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}
