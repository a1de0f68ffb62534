//! The calls of an answer, checked before anything runs.

use harness_agent::{CallAction, IntrinsicRequest, ModelAnswer, PlannedCall};
use harness_model::{ModelOutput, RequestedCall, StoredItem, limits};

use crate::fixture::{Fixture, SECRET, Speak, Tools, answer, call, model_input, order_schema, tool};

const GET: &str = "shop/orders.get_order";

async fn asked(calls: Vec<RequestedCall>) -> (Fixture, ModelAnswer) {
    let mut tools = Tools { catalogue: vec![tool(GET, order_schema())], ..Tools::default() };
    tools.catalogue[0].deduplicates = true;
    let fixture = Fixture::with_tools(tools);
    fixture.script([Speak::Done(ModelOutput { calls, ..answer("") })]);
    let answer = fixture.ask(&model_input(), "run-1").await;
    (fixture, answer)
}

async fn planned(calls: Vec<RequestedCall>) -> Vec<PlannedCall> {
    asked(calls).await.1.calls
}

/// The text of a refusal.
fn refusal(call: &PlannedCall) -> String {
    match &call.action {
        CallAction::Refused(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_call_is_planned_with_what_it_may() {
    let (fixture, answer) = asked(vec![call("c1", GET, r#" {"order_id": "48213"} "#)]).await;
    let planned = &answer.calls[0];
    assert_eq!((planned.name.as_str(), planned.summary.as_str()), (GET, "order_id: 48213"));
    let CallAction::Tool { arguments, idempotent: true, deduplicates: true, .. } = &planned.action else {
        panic!("{planned:?}")
    };
    assert_eq!(fixture.bytes(arguments).await, r#"{"order_id":"48213"}"#);
    assert!(answer.answer.is_none());
}

#[tokio::test]
async fn an_unknown_tool_is_refused_under_a_clean_name() {
    let name = format!("<b>evil\u{1b}\n{}", "x".repeat(5_000));
    let calls = planned(vec![call("c1", &name, "{}")]).await;
    assert!(
        calls[0].name.starts_with("‹b›evil x") && calls[0].name.chars().count() <= 64,
        "{}",
        calls[0].name
    );
    assert!(refusal(&calls[0]).starts_with("[tool.not_found] there is no tool"));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let large = format!(r#"{{"order_id": "{}"}}"#, "x".repeat(limits::CALL_ARGUMENTS_BYTES_MAX));
    for (arguments, why) in [
        (r#"{"order_id": "#, "not valid JSON at line 1"),
        ("[1]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("", "\"order_id\" is a required property"),
        (r#"{"order_id": 48213}"#, "at /order_id: value is not of type \"string\""),
        (r#"{"order_id": "1", "x": 1}"#, "'x' was unexpected"),
        (deep.as_str(), "nested deeper than 64 levels"),
        (large.as_str(), "may have 262144"),
    ] {
        let calls = planned(vec![call("c1", GET, arguments)]).await;
        let text = refusal(&calls[0]);
        assert!(
            text.starts_with("[tool.invalid_arguments] the arguments of shop/orders.get_order"),
            "{text}"
        );
        assert!(text.contains(why) && text.len() < 1_000, "{text}");
    }
}

#[tokio::test]
async fn intrinsic_calls_are_read() {
    let (fixture, answer) = asked(vec![
        call("c1", "create_plan", r#"{"steps":[{"name":"Look"},{"name":"Act","depends_on":["Look"]}]}"#),
        call("c2", "ask_participant", r#"{"participant_id":"ada","question":"Which?"}"#),
        call("c3", "ask_participant", r#"{"participant_id":"ada","question":"   "}"#),
        call("c4", "create_plan", r#"{"steps":[]}"#),
    ])
    .await;
    let actions: Vec<&CallAction> = answer.calls.iter().map(|call| &call.action).collect();
    assert!(
        matches!(actions[0], CallAction::Intrinsic(IntrinsicRequest::CreatePlan { steps }) if steps.len() == 2)
    );
    let CallAction::Intrinsic(IntrinsicRequest::AskParticipant { question, .. }) = actions[1] else {
        panic!()
    };
    assert_eq!(fixture.text(question).await, "Which?");
    assert!(refusal(&answer.calls[2]).contains("the question is blank"));
    assert!(refusal(&answer.calls[3]).starts_with("[tool.invalid_arguments]"));
}

#[tokio::test]
async fn repeated_call_ids_become_different_ones_everywhere() {
    let get = |id: &str| call(id, GET, r#"{"order_id":"1"}"#);
    let (fixture, answer) = asked(vec![get("c"), get("c"), get("")]).await;
    let planned: Vec<&str> = answer.calls.iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!(planned, ["c", "c_2", "call_2"]);
    let StoredItem::Model(output) = fixture.item(&answer.item.body).await else { panic!() };
    let kept: Vec<&str> = output.calls.iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!(kept, planned);
}

#[tokio::test]
async fn too_many_calls_are_refused_and_the_facts_stay_small() {
    let many = (0..10_000).map(|n| call(&format!("call-{n}"), GET, r#"{"order_id":"1"}"#)).collect();
    let calls = planned(many).await;
    let (run, refused) = calls.split_at(limits::CALLS_PER_TURN_MAX);
    assert!(run.iter().all(|call| matches!(call.action, CallAction::Tool { .. })));
    assert_eq!(refused.len(), limits::CALLS_PER_TURN_MAX);
    assert!(refused.iter().all(|call| refusal(call).contains("one answer may have 64 calls")));
}

#[tokio::test]
async fn a_plan_too_large_for_a_history_is_refused_in_words() {
    let step = |n: usize| serde_json::json!({"name": format!("step {n}"), "description": "x".repeat(1_900)});
    let steps: Vec<_> = (0..60).map(step).collect();
    let arguments = serde_json::json!({"steps": steps}).to_string();
    let calls =
        planned(vec![call("a", "create_plan", &arguments), call("b", GET, r#"{"order_id":"1"}"#)]).await;
    assert!(refusal(&calls[0]).contains("use shorter texts"), "{}", refusal(&calls[0]));
    assert!(matches!(calls[1].action, CallAction::Tool { .. }));
}

#[tokio::test]
async fn secrets_in_arguments_go_nowhere() {
    let arguments = format!(r#"{{"order_id":"{SECRET}"}}"#);
    let (fixture, answer) = asked(vec![call("c", GET, &arguments)]).await;
    let CallAction::Tool { arguments, .. } = &answer.calls[0].action else { panic!() };
    assert_eq!(fixture.bytes(arguments).await, r#"{"order_id":"[REDACTED]"}"#);
    assert_eq!(answer.calls[0].summary, "order_id: [REDACTED]");
    let item = format!("{:?}", fixture.item(&answer.item.body).await);
    assert!(!item.contains(SECRET));
}

#[tokio::test]
async fn a_refusal_of_the_model_is_its_answer() {
    let fixture = Fixture::new();
    let output = ModelOutput {
        refusal: Some("I will not.".to_owned()),
        finish: harness_model::Finish::Refusal,
        ..answer("")
    };
    fixture.script([Speak::Done(output)]);
    let answered = fixture.ask(&model_input(), "run-1").await;
    let text = answered.answer.unwrap();
    assert_eq!(fixture.text(&text.text).await, "I will not.");
    assert_eq!((text.streamed, text.tail), (false, text.text));
}
