//! Things that happen at the same time, each decided on purpose.

use harness_model::{Lifecycle, codes};
use harness_ports::{Admission, EventKind, FailureKind, Signal};
use serde_json::json;

use super::driver::{Driver, answer, ask, block, call, failure, message, own_text, tool, tool_result};
use crate::CallAction;

fn interrupting(id: &str) -> harness_model::InboundMessage {
    harness_model::InboundMessage { interrupt: true, ..message(id) }
}

#[test]
fn a_message_during_a_turn_waits_and_keeps_the_task_going() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.say(&message("m2"));
    assert_eq!(task.took(), "");
    task.model(answer("done", vec![]));
    assert_eq!(task.took(), "artifact answer-1, WORKING \"done\", run intake");
    task.intake();
    task.model(answer("done too", vec![]));
    assert!(task.took().ends_with("COMPLETED \"done too\", close"));
}

#[test]
fn an_interrupt_drops_the_model_call_and_keeps_the_messages() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let stale = task.only("invoke_model");
    task.say(&interrupting("m2"));
    assert_eq!(task.took(), "cancel activity, run intake");
    task.complete(&stale, answer("too late", vec![]));
    assert_eq!(task.took(), "", "the late answer changes nothing");
    task.intake();
    let id = task.only("invoke_model");
    assert_eq!(task.input(&id)["turn"], 2);
    assert_eq!(task.input(&id)["fresh"].as_array().unwrap().len(), 2, "both messages");
}

#[test]
fn an_interrupt_keeps_finished_results_and_is_honest_about_the_rest() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("a", true), tool("b", false), tool("c", true)]));
    let id = task.only("invoke_tool");
    task.complete(&id, tool_result("finished"));
    task.took();
    task.say(&interrupting("m2"));
    assert_eq!(
        task.took(),
        "cancel activity, WORKING [a:succeeded b:outcome_unknown c:canceled], run intake"
    );
    let data = task.state();
    assert!(own_text(&data, "b").starts_with("[tool.outcome_unknown]"));
    assert!(own_text(&data, "c").starts_with("[tool.interrupted]"));
    assert_eq!(data.fresh[1].chars, "finished".len() as u64);
}

#[test]
fn a_question_and_a_message_in_one_turn_ask_after_the_message_was_read() {
    let mut task = Driver::modeling(Lifecycle::Conversation);
    task.say(&message("m2"));
    task.model(answer("", vec![ask("q", "Sure?")]));
    assert_eq!(task.took(), "WORKING [q:succeeded], run intake");
    let id = task.only("intake");
    assert_eq!(task.input(&id)["pending_help"], json!(null), "said before anybody saw the question");
    task.intake();
    task.took();
    task.say(&message("m3"));
    task.model(answer("noted", vec![]));
    let id = task.only("intake");
    assert_eq!(task.input(&id)["pending_help"], json!(null), "still nobody saw it");
    task.intake();
    task.took();
    task.model(answer("and that", vec![]));
    assert_eq!(task.took(), "artifact answer-3, WORKING \"and that\", INPUT_REQUIRED \"Sure?\"");
    task.say(&message("m4"));
    let id = task.only("intake");
    assert_eq!(task.input(&id)["pending_help"]["participant_id"], "ada");
}

#[test]
fn cancel_while_tools_run_ends_at_once() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("a", true), tool("b", true)]));
    let ids = task.activities("invoke_tool");
    task.complete(&ids[0], tool_result("x"));
    task.took();
    task.cancel();
    assert_eq!(
        task.took(),
        "cancel activity, CANCELED \"canceled by client\" [a:succeeded b:canceled], close"
    );
    task.complete(&ids[1], tool_result("late"));
    assert_eq!(task.took(), "");
    let signal = Signal { name: "message.v1".to_owned(), payload: json!({}), dedupe_key: None, trace: None };
    assert_eq!(task.workflow.admits(&signal), Admission::Closed);
}

#[test]
fn an_unknown_outcome_is_reported_and_never_repeated() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("pay", false)]));
    let id = task.only("invoke_tool");
    task.took();
    task.fail(&id, failure(FailureKind::OutcomeUnknown));
    assert_eq!(task.took(), "WORKING [pay:outcome_unknown], run invoke_model");
    assert!(
        own_text(&task.state(), "pay").starts_with("[tool.outcome_unknown] nobody knows whether tool-pay")
    );
}

#[test]
fn a_call_with_a_key_is_repeated_under_the_same_key() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let action =
        CallAction::Tool { arguments: block("{}"), idempotent: false, read_only: false, deduplicates: true };
    task.model(answer("", vec![call("pay", action)]));
    let first = task.only("invoke_tool");
    let key = task.input(&first)["idempotency_key"].clone();
    task.took();
    task.fail(&first, failure(FailureKind::OutcomeUnknown));
    assert_eq!(task.took(), "start timer, WORKING [pay:running]".replace(", WORKING [pay:running]", ""));
    task.fire();
    let second = task.only("invoke_tool");
    assert_ne!(first, second);
    assert_eq!(task.input(&second)["idempotency_key"], key);
}

#[test]
fn a_call_that_was_never_sent_is_not_retried_unless_it_may_be() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("pay", false)]));
    let id = task.only("invoke_tool");
    task.fail(&id, failure(FailureKind::Retryable { after_ms: None }));
    assert!(own_text(&task.state(), "pay").starts_with("[tool.not_retried] tool-pay did not run"));
}

#[test]
fn the_inbox_is_bounded() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    for n in 0..harness_model::limits::INBOX_MESSAGES_MAX {
        task.say(&message(&format!("x{n}")));
    }
    let signal = Signal {
        name: "message.v1".to_owned(),
        payload: serde_json::to_value(message("one-too-many")).unwrap(),
        dedupe_key: None,
        trace: None,
    };
    assert!(matches!(task.workflow.admits(&signal), Admission::Refuse(_)));
}

#[test]
fn what_the_task_does_not_know_is_refused_before_it_is_recorded() {
    let task = Driver::modeling(Lifecycle::Delegated);
    for (name, payload) in
        [("nonsense.v1", json!({})), ("message.v1", json!({"text": 1})), ("cancel.v1", json!(null))]
    {
        let signal = Signal { name: name.to_owned(), payload, dedupe_key: None, trace: None };
        assert!(matches!(task.workflow.admits(&signal), Admission::Refuse(_)), "{name}");
    }
}

#[test]
fn impossible_histories_are_errors_not_panics() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let id = task.only("invoke_model");
    let event = |kind| harness_ports::HistoryEvent { at: harness_model::Timestamp::from_millis(1), kind };
    let garbage = EventKind::ActivityCompleted { activity_id: id, result: json!({"what": "is this"}) };
    let error = task.workflow.apply(&event(garbage)).unwrap_err();
    assert_eq!(error.state, "modeling");
    let again = EventKind::Started { input: json!({}) };
    assert!(task.workflow.apply(&event(again)).is_err());
    assert_eq!(codes::STATE_INVALID.as_str(), "state.invalid");
}

#[test]
fn a_flood_of_messages_is_read_in_portions_before_the_model_is_asked() {
    let mut task = Driver::modeling(Lifecycle::Conversation);
    for n in 0..100 {
        task.say(&message(&format!("x{n}")));
    }
    task.model(answer("hi", vec![]));
    let first = task.only("intake");
    assert_eq!(task.input(&first)["messages"].as_array().unwrap().len(), 64);
    task.intake();
    let second = task.only("intake");
    assert_eq!(task.input(&second)["messages"].as_array().unwrap().len(), 36);
    task.intake();
    let id = task.only("invoke_model");
    assert_eq!(task.input(&id)["fresh"].as_array().unwrap().len(), 101, "the answer and every message");
}

#[test]
fn a_write_that_may_be_repeated_is_a_write_all_the_same() {
    let write = || {
        let action = CallAction::Tool {
            arguments: block("{}"),
            idempotent: true,
            read_only: false,
            deduplicates: false,
        };
        call("put", action)
    };
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![write()]));
    task.took();
    task.cancel();
    assert!(task.took().contains("[put:outcome_unknown]"), "nobody knows whether it went through");

    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![write()]));
    let id = task.only("invoke_tool");
    task.complete(&id, tool_result("done"));
    let reject = crate::IntrinsicRequest::RejectTask { reason: "not mine".into() };
    task.model(answer("", vec![call("r", CallAction::Intrinsic(reject))]));
    assert!(own_text(&task.state(), "r").starts_with("[task.effects_exist]"));
}
