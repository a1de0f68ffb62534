//! What the model is sent, and what is kept of it.

use harness_agent::{
    LoadedSkill, Measured, ModelOutcome,
    context::{LINKS_MAX, Manifest},
};
use harness_model::{ItemBody, ItemPart, ItemRef, StoredItem};
use harness_ports::InputItem;

use crate::fixture::{Fixture, SECRET, Speak, answer, call, model_input, order_schema, say, tool};

fn user(text: &str) -> StoredItem {
    StoredItem::User { parts: vec![ItemPart::Text(text.to_owned())], source: None }
}

async fn item_ref(fixture: &Fixture, id: u64, item: &StoredItem) -> ItemRef {
    ItemRef { id, chars: item.chars(), body: ItemBody::Block(fixture.put_json(item).await) }
}

fn texts(input: &[InputItem]) -> Vec<String> {
    let text = |item: &InputItem| match item {
        InputItem::User { parts } | InputItem::ToolResult { parts, .. } => format!("{parts:?}"),
        InputItem::Model(output) => output.text.clone(),
    };
    input.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn the_request_says_what_it_is_for() {
    let mut fixture = Fixture::new();
    fixture.tools = std::sync::Arc::new(crate::fixture::Tools {
        catalogue: vec![tool("shop.get", order_schema())],
        ..Default::default()
    });
    fixture.begin_task("It is broken").await;
    fixture.script([Speak::Done(answer("ok"))]);
    let mut input = model_input();
    input.model = Some("big".to_owned());
    fixture.ask(&input, "run-1").await;
    let requests = fixture.model.requests.lock().unwrap();
    let request = &requests[0];
    assert_eq!(request.model.as_deref(), Some("big"));
    assert_eq!(request.cache_key, "task-1");
    assert_eq!(request.max_output_tokens, 777);
    assert_eq!(request.meta.turn, 1);
    assert_eq!(request.meta.message_id.as_ref().map(AsRef::as_ref), Some("m-1"));
    assert_eq!(request.meta.message_text, "It is broken");
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"shop.get") && names.contains(&"create_plan"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_grows_by_links_and_is_written_whole_in_time() {
    let fixture = Fixture::new();
    let mut input = model_input();
    let (mut expected, mut longest) = (Vec::new(), 0);
    for turn in 1..=u64::from(LINKS_MAX) + 4 {
        let words = user(&format!("[ada] message {turn}"));
        input.fresh = vec![item_ref(&fixture, turn, &words).await];
        expected.push(format!("[Text(\"[ada] message {turn}\")]"));
        fixture.script([Speak::Done(answer("ok"))]);
        let answered = fixture.ask(&input, "run-1").await;
        let manifest: Manifest = serde_json::from_slice(&fixture.bytes(&answered.manifest).await).unwrap();
        longest = longest.max(manifest.depth);
        if manifest.base.is_none() {
            assert_eq!(manifest.items.len(), expected.len());
        }
        input.manifest = Some(answered.manifest);
        let requests = fixture.model.requests.lock().unwrap();
        assert_eq!(texts(&requests.last().unwrap().input)[1..], expected);
    }
    assert_eq!(longest, LINKS_MAX - 1);
}

#[tokio::test(start_paused = true)]
async fn loaded_skills_are_in_the_context() {
    let fixture = Fixture::new();
    let mut input = model_input();
    let body = fixture.put("Be kind.").await;
    input.skills = vec![LoadedSkill { name: "support".to_owned(), body }];
    fixture.script([Speak::Done(answer("ok"))]);
    fixture.ask(&input, "run-1").await;
    let requests = fixture.model.requests.lock().unwrap();
    assert!(texts(&requests[0].input)[0].contains("<skill:support>\\nBe kind.\\n</skill:support>"));
}

#[tokio::test(start_paused = true)]
async fn a_context_over_budget_is_not_sent() {
    let mut fixture = Fixture::new();
    let mut input = model_input();
    input.fresh = vec![item_ref(&fixture, 1, &user(&"x".repeat(300_000))).await];
    let outcome = fixture.outcome(&input, "run-1").await.unwrap();
    let ModelOutcome::OverBudget { estimate_tokens, budget_tokens } = outcome else { panic!("{outcome:?}") };
    assert_eq!(budget_tokens, 50_000, "the window of the model is smaller than the configured budget");
    assert!(estimate_tokens > 75_000);
    // What was measured counts more than what is estimated.
    input.measured = Some(Measured { input_tokens: 40_000, chars: 400_000 });
    fixture.script([Speak::Done(answer("ok"))]);
    fixture.ask(&input, "run-1").await;
    fixture.turn_budget_tokens = 30_000;
    let outcome = fixture.outcome(&input, "run-1").await.unwrap();
    assert_eq!(outcome, ModelOutcome::OverBudget { estimate_tokens: 40_000, budget_tokens: 30_000 });
    assert_eq!(fixture.model.requests.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_secret_reaches_the_model() {
    let fixture = Fixture::new();
    let mut input = model_input();
    input.extension.goal = format!("Use {SECRET}");
    input.fresh = vec![
        item_ref(&fixture, 1, &user(&format!("[ada] it is {SECRET}"))).await,
        item_ref(
            &fixture,
            2,
            &StoredItem::Model(harness_model::ModelOutput {
                calls: vec![call("c", "list_skills", "{}")],
                ..answer("")
            }),
        )
        .await,
        item_ref(
            &fixture,
            3,
            &StoredItem::ToolResult {
                call_id: "c".into(),
                name: "list_skills".to_owned(),
                is_error: false,
                parts: vec![ItemPart::Data(serde_json::json!({"deep": [SECRET]}))],
            },
        )
        .await,
    ];
    fixture.script([Speak::Done(answer("ok"))]);
    fixture.ask(&input, "run-1").await;
    let sent = format!("{:?}", fixture.model.requests.lock().unwrap()[0]);
    assert!(!sent.contains(SECRET));
    assert_eq!(sent.matches("[REDACTED]").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn two_runs_give_the_same_bytes() {
    let output = harness_model::ModelOutput {
        calls: vec![call("a", "create_plan", r#"{"steps":[{"name":"one"}]}"#), call("a", "list_skills", "")],
        ..answer("First a plan.")
    };
    let mut results = Vec::new();
    for run in ["run-1", "run-2"] {
        let fixture = Fixture::new();
        fixture.begin_task("It is broken").await;
        fixture.script([say("First "), say("a plan."), Speak::Done(output.clone())]);
        results.push(serde_json::to_string(&fixture.ask(&model_input(), run).await).unwrap());
    }
    assert_eq!(results[0], results[1]);
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_kept_scrubbed() {
    let fixture = Fixture::new();
    fixture.script([Speak::Done(answer(&format!("It is {SECRET}.")))]);
    let answered = fixture.ask(&model_input(), "run-1").await;
    let item = fixture.item(&answered.item.body).await;
    let StoredItem::Model(output) = &item else { panic!("{item:?}") };
    assert_eq!(output.text, "It is [REDACTED].");
    assert_eq!(answered.item.chars, item.chars());
    assert_eq!(answered.usage.input, Some(100));
}
