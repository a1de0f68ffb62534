//! A real model over a real server. It proves the wire, not the wisdom: shapes are asserted, never sense.

use std::sync::Arc;

use harness_model::Finish;
use harness_ports::{InputItem, ModelErrorKind, ModelRequest};
use harness_providers::{Api, EndpointConfig, HttpProvider};
use harness_testkit::{LocalModel, LocalModelKind};
use serde_json::{Value, json};

use crate::{
    outcome::{config, request, result, run, tool, user},
    wires::Wire,
};

/// Rounds of questions asked until the model calls its tool. A model this small does so when it likes: often at the first
/// question, and now and then at none of eight.
const ROUNDS: usize = 5;
/// What is asked about in each round.
const CITIES: [&str; 8] = ["Delhi", "Cairo", "Oslo", "Paris", "Rome", "Berlin", "Madrid", "Quito"];

fn provider(wire: Wire, model: &LocalModel, stream: bool) -> HttpProvider {
    let config = EndpointConfig { api_key: None, ..config(&model.base_url, stream) };
    let api = match wire {
        // This model does not reason.
        Wire::Responses => Api::Responses { encrypted_reasoning: false },
        Wire::Chat | Wire::Messages => wire.api(),
    };
    HttpProvider::new(api, config).unwrap()
}

fn plain(text: &str) -> ModelRequest {
    ModelRequest { input: vec![user(text)], tools: Arc::default(), max_output_tokens: 24, ..request() }
}

#[tokio::test]
async fn text_on_chat_completions() {
    text_on(Wire::Chat).await;
}

#[tokio::test]
async fn text_on_responses() {
    text_on(Wire::Responses).await;
}

#[tokio::test]
async fn text_on_messages() {
    text_on(Wire::Messages).await;
}

#[tokio::test]
async fn a_tool_call_on_chat_completions() {
    tool_call_on(Wire::Chat).await;
}

#[tokio::test]
async fn a_tool_call_on_responses() {
    tool_call_on(Wire::Responses).await;
}

#[tokio::test]
async fn a_tool_call_on_messages() {
    tool_call_on(Wire::Messages).await;
}

async fn text_on(wire: Wire) {
    let Some(model) = LocalModel::start(LocalModelKind::PlainText).await else { return };
    for stream in [true, false] {
        writes_text(&provider(wire, &model, stream), stream).await;
    }
    let error = run(&provider(wire, &model, true), plain(&"word ".repeat(6_000))).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextOverflow, "{error}");
    if wire == Wire::Chat {
        keeps_to_a_schema(&provider(wire, &model, true)).await;
    }
}

/// This server enforces schemas on this wire only.
async fn keeps_to_a_schema(provider: &HttpProvider) {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let request =
        ModelRequest { response_format: Some(schema), max_output_tokens: 60, ..plain("Ann is 31.") };
    let (_, output) = run(provider, request).await.unwrap();
    if output.finish == Finish::Stop {
        let value: Value = serde_json::from_str(&output.text).expect("a schema gives JSON");
        assert!(value["age"].is_i64(), "{value}");
    }
}

async fn writes_text(provider: &HttpProvider, stream: bool) {
    let (deltas, output) = run(provider, plain("Tell me a story.")).await.unwrap();
    assert!(!output.text.is_empty() && output.calls.is_empty(), "{output:?}");
    assert!(matches!(output.finish, Finish::Stop | Finish::Length), "{output:?}");
    assert!(output.usage.input.is_some_and(|tokens| tokens > 0), "{output:?}");
    assert!(output.usage.output.is_some_and(|tokens| (1..=24).contains(&tokens)), "{output:?}");
    if stream {
        assert!(deltas.len() > 1, "a stream comes in pieces: {deltas:?}");
    }
    let input = vec![user("Tell me a story."), InputItem::Model(output), user("Go on.")];
    let (_, next) = run(provider, ModelRequest { input, ..plain("") }).await.unwrap();
    assert!(!next.text.is_empty() && next.usage.cached.is_some_and(|tokens| tokens > 0), "{next:?}");
}

async fn tool_call_on(wire: Wire) {
    let Some(model) = LocalModel::start(LocalModelKind::ToolCalls).await else { return };
    for (at, city) in CITIES.iter().cycle().take(ROUNDS * CITIES.len()).enumerate() {
        // Streamed first; the other form when that did not make it call.
        if call_once(&provider(wire, &model, at % 2 == 0), city).await {
            return;
        }
    }
    panic!("no tool call in {} tries", ROUNDS * CITIES.len());
}

/// Whether the model called its tool; then the result goes back and the model answers again.
async fn call_once(provider: &HttpProvider, city: &str) -> bool {
    let weather = harness_ports::ToolDefinition {
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
        ..tool("geo/weather.get_weather")
    };
    let asked = ModelRequest {
        input: vec![user(&format!("What is the weather in {city}?"))],
        tools: [weather].into(),
        max_output_tokens: 96,
        ..request()
    };
    let output = match run(provider, asked.clone()).await {
        Ok((_, output)) => output,
        // Free writing in the place of a call is something the server cannot read.
        Err(error) => {
            assert!(matches!(error.kind, ModelErrorKind::Unparseable | ModelErrorKind::Empty), "{error:?}");
            return false;
        }
    };
    let Some(call) = output.calls.first() else {
        assert!(!output.text.is_empty(), "{output:?}");
        return false;
    };
    assert_eq!((call.name.as_str(), &output.finish), ("geo/weather.get_weather", &Finish::ToolCalls));
    assert!(!call.call_id.as_str().is_empty(), "{call:?}");
    if call.arguments.is_empty() {
        // Cut off by the limit before its first argument.
        return false;
    }
    let results: Vec<InputItem> = output
        .calls
        .iter()
        .map(|call| result(call.call_id.as_str(), &call.name, "{\"sky\":\"clear\"}"))
        .collect();
    let mut input = asked.input.clone();
    input.push(InputItem::Model(output));
    input.extend(results);
    match run(provider, ModelRequest { input, ..asked }).await {
        Ok((_, next)) => assert!(!next.text.is_empty() || !next.calls.is_empty(), "{next:?}"),
        Err(error) => {
            assert!(matches!(error.kind, ModelErrorKind::Unparseable | ModelErrorKind::Empty), "{error:?}");
        }
    }
    true
}
