//! Keeps the recorded facts of an answer within the limit of a history payload, by giving up what matters least first.

use harness_agent::{CallAction, ModelAnswer, PlannedCall};
use harness_model::{CodedError, codes, limits, truncate_chars};

/// Bytes left for what the engine records around the answer.
const MARGIN_BYTES: usize = 2_048;
/// Characters that the reason of a refusal shrinks to.
const SHORT_REASON_CHARS: usize = 60;
/// Characters that the name of something that is no tool shrinks to.
const SHORT_NAME_CHARS: usize = 32;

/// Shrinks the answer until it fits: first the lines for people go, then the largest requests are refused, then refusals
/// are put in few words.
pub(super) fn apply(answer: &mut ModelAnswer) {
    if fits(answer) {
        return;
    }
    answer.calls.iter_mut().for_each(|call| call.summary.clear());
    while !fits(answer) {
        let largest = answer.calls.iter_mut().filter(|call| is_intrinsic(call)).max_by_key(json_bytes);
        let Some(call) = largest else { break };
        let text = format!(
            "the arguments of {} take {} bytes, too much together with the other calls; use shorter texts, or one call",
            call.name,
            json_bytes(call)
        );
        call.action = CallAction::Refused(CodedError::new(codes::TOOL_INVALID_ARGUMENTS, text));
    }
    if fits(answer) {
        return;
    }
    for call in &mut answer.calls {
        if let CallAction::Refused(error) = &mut call.action {
            error.message = truncate_chars(&error.message, SHORT_REASON_CHARS);
            if error.code == codes::TOOL_NOT_FOUND {
                call.name = truncate_chars(&call.name, SHORT_NAME_CHARS);
            }
        }
    }
}

fn is_intrinsic(call: &PlannedCall) -> bool {
    matches!(call.action, CallAction::Intrinsic(_))
}

fn fits(answer: &ModelAnswer) -> bool {
    json_bytes(answer) <= limits::HISTORY_PAYLOAD_BYTES_MAX - MARGIN_BYTES
}

fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use harness_agent::{IntrinsicRequest, ItemDraft};
    use harness_model::{BlockRef, Finish, ItemBody, NewStep, Usage};

    use super::*;

    fn answer(calls: Vec<PlannedCall>) -> ModelAnswer {
        ModelAnswer {
            manifest: BlockRef::to(b""),
            item: ItemDraft { body: ItemBody::Block(BlockRef::to(b"")), chars: 0 },
            answer: None,
            calls,
            finish: Finish::ToolCalls,
            usage: Usage::default(),
            model: "p:m".to_owned(),
            context_chars: 0,
        }
    }

    fn call(number: usize, action: CallAction) -> PlannedCall {
        PlannedCall {
            call_id: format!("call_{number:059}").into(),
            name: "ü".repeat(64),
            summary: "ü".repeat(limits::CALL_SUMMARY_CHARS_MAX),
            action,
        }
    }

    fn tool() -> CallAction {
        CallAction::Tool {
            arguments: BlockRef::to(b"{}"),
            idempotent: true,
            read_only: true,
            deduplicates: false,
        }
    }

    fn plan(steps: usize) -> CallAction {
        let step = |n: usize| NewStep {
            name: format!("step {n}"),
            description: "x".repeat(2_000),
            depends_on: Vec::new(),
        };
        CallAction::Intrinsic(IntrinsicRequest::CreatePlan { steps: (0..steps).map(step).collect() })
    }

    #[test]
    fn an_ordinary_answer_is_left_alone() {
        let mut ordinary = answer((0..64).map(|n| call(n, tool())).collect());
        let before = ordinary.clone();
        apply(&mut ordinary);
        assert_eq!(ordinary, before);
    }

    #[test]
    fn the_largest_request_is_refused_and_the_others_stay() {
        let mut large = answer(vec![call(0, plan(3)), call(1, plan(60)), call(2, tool())]);
        apply(&mut large);
        assert!(fits(&large));
        assert!(matches!(large.calls[0].action, CallAction::Intrinsic(_)));
        assert!(matches!(large.calls[1].action, CallAction::Refused(_)));
        assert!(matches!(large.calls[2].action, CallAction::Tool { .. }));
    }

    #[test]
    fn the_worst_answer_fits() {
        let error = |_| CodedError::new(codes::TOOL_NOT_FOUND, "ü".repeat(800));
        let calls = (0..128).map(|n| call(n, if n < 64 { tool() } else { CallAction::Refused(error(n)) }));
        let mut worst = answer(calls.collect());
        apply(&mut worst);
        assert!(fits(&worst), "{}", json_bytes(&worst));
        assert_eq!(worst.calls.len(), 128);
    }
}
