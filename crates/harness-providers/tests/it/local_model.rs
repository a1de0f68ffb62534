//! A real model over a real server. It proves the wire, not the wisdom: shapes are asserted, never sense.

use harness_model::Finish;
use harness_ports::{InputItem, ModelErrorKind, ModelRequest};
use harness_providers::{ChatCompletionsConfig, ChatCompletionsProvider};
use harness_testkit::{LocalModel, LocalModelKind};
use serde_json::{Value, json};

use crate::outcome::{config, request, result, run, tool, user};

/// Questions asked until the model calls its tool; it does so nine times in ten.
const CITIES: [&str; 8] = ["Paris", "Rome", "Oslo", "Berlin", "Madrid", "Quito", "Delhi", "Cairo"];

fn provider(model: &LocalModel, stream: bool) -> ChatCompletionsProvider {
    let config = ChatCompletionsConfig { api_key: None, ..config(&model.base_url, stream) };
    ChatCompletionsProvider::new(config).unwrap()
}

fn plain(text: &str) -> ModelRequest {
    ModelRequest { input: vec![user(text)], tools: Vec::new(), max_output_tokens: 24, ..request() }
}

#[tokio::test]
async fn a_real_model_writes_text() {
    let Some(model) = LocalModel::start(LocalModelKind::PlainText).await else { return };
    for stream in [true, false] {
        let (deltas, output) = run(&provider(&model, stream), plain("Tell me a story.")).await.unwrap();
        assert!(!output.text.is_empty() && output.calls.is_empty(), "{output:?}");
        assert!(matches!(output.finish, Finish::Stop | Finish::Length), "{output:?}");
        assert!(output.usage.input.is_some_and(|tokens| tokens > 0), "{output:?}");
        assert!(output.usage.output.is_some_and(|tokens| (1..=24).contains(&tokens)), "{output:?}");
        if stream {
            assert!(deltas.len() > 1, "a stream comes in pieces: {deltas:?}");
        }
    }

    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let request =
        ModelRequest { response_format: Some(schema), max_output_tokens: 60, ..plain("Ann is 31.") };
    let (_, output) = run(&provider(&model, true), request).await.unwrap();
    if output.finish == Finish::Stop {
        let value: Value = serde_json::from_str(&output.text).expect("a schema gives JSON");
        assert!(value["age"].is_i64(), "{value}");
    }

    let error = run(&provider(&model, true), plain(&"word ".repeat(6_000))).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextOverflow, "{error}");
}

#[tokio::test]
async fn a_real_model_calls_a_tool_and_takes_its_result() {
    let Some(model) = LocalModel::start(LocalModelKind::ToolCalls).await else { return };
    for (at, city) in CITIES.iter().enumerate() {
        if call_once(&provider(&model, at % 2 == 0), city).await {
            return;
        }
    }
    panic!("no tool call in {} tries", CITIES.len());
}

/// Whether the model called its tool; then the result goes back and the model answers again.
async fn call_once(provider: &ChatCompletionsProvider, city: &str) -> bool {
    let weather = harness_ports::ToolDefinition {
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
        ..tool("geo/weather.get_weather")
    };
    let asked = ModelRequest {
        input: vec![user(&format!("What is the weather in {city}?"))],
        tools: vec![weather],
        max_output_tokens: 40,
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
    assert!(!call.call_id.as_str().is_empty() && !call.arguments.is_empty(), "{call:?}");
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
