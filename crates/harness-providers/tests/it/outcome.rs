//! Requests for tests, and what came of a call as one line of text.

use std::time::Duration;

use futures::StreamExt;
use harness_model::{CallId, Finish, ItemPart, ModelOutput, RequestedCall, Secret, TaskId, Usage};
use harness_ports::{
    InputItem, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, RequestMeta,
    ToolDefinition,
};
use harness_providers::{ChatCompletionsProvider, EndpointConfig, HttpProvider};
use serde_json::json;

use crate::{fake_server::KEY, wires::Wire};

/// A provider for a test server.
pub(crate) fn provider(base_url: &str, stream: bool) -> ChatCompletionsProvider {
    ChatCompletionsProvider::new(config(base_url, stream)).unwrap()
}

/// The same for any wire.
pub(crate) fn provider_on(wire: Wire, base_url: &str, stream: bool) -> HttpProvider {
    HttpProvider::new(wire.api(), config(base_url, stream)).unwrap()
}

pub(crate) fn config(base_url: &str, stream: bool) -> EndpointConfig {
    EndpointConfig {
        name: "fake".to_owned(),
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new(KEY)),
        model: "test-model".to_owned(),
        models: vec!["other-model".to_owned()],
        timeout: Duration::from_secs(20),
        max_output_tokens: 2_000,
        context_window_tokens: 8_192,
        stream,
    }
}

/// A request with one message and two tools.
pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: None,
        reasoning_effort: None,
        instructions: "Be brief.".to_owned(),
        input: vec![user("Hello")],
        tools: [tool("create_plan"), tool("shop/orders.get_order")].into(),
        response_format: None,
        cache_key: "task-1".to_owned(),
        max_output_tokens: 1_000,
        meta: RequestMeta {
            task_id: TaskId::from("task-1"),
            turn: 1,
            message_id: Some("m-1".into()),
            message_text: "Hello".to_owned(),
        },
    }
}

pub(crate) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object", "properties": {"order_id": {"type": "string"}}}),
        idempotent: true,
        read_only: true,
        deduplicates: false,
    }
}

pub(crate) fn user(text: &str) -> InputItem {
    InputItem::User { parts: vec![ItemPart::Text(text.to_owned())] }
}

pub(crate) fn answer(text: &str, calls: &[(&str, &str, &str)]) -> ModelOutput {
    let call = |(id, name, arguments): &(&str, &str, &str)| RequestedCall {
        call_id: CallId::from(*id),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    ModelOutput {
        text: text.to_owned(),
        calls: calls.iter().map(call).collect(),
        refusal: None,
        finish: if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
        usage: Usage::default(),
        model: "test-model".to_owned(),
        provider: "fake".to_owned(),
        request_id: None,
        raw_items: Vec::new(),
    }
}

pub(crate) fn result(call_id: &str, name: &str, text: &str) -> InputItem {
    InputItem::ToolResult {
        call_id: CallId::from(call_id),
        name: name.to_owned(),
        is_error: false,
        parts: vec![ItemPart::Text(text.to_owned())],
    }
}

/// Runs a call to its end. Fails when the provider breaks the contract of its port.
pub(crate) async fn run(
    provider: &impl ModelProvider,
    request: ModelRequest,
) -> Result<(Vec<String>, ModelOutput), ModelError> {
    checked(provider.stream(request).collect().await)
}

/// The same for a try that is not the first.
pub(crate) async fn run_attempt(
    provider: &impl ModelProvider,
    request: ModelRequest,
    attempt: u32,
) -> Result<(Vec<String>, ModelOutput), ModelError> {
    checked(provider.stream_attempt(request, attempt).collect().await)
}

fn checked(events: Vec<Result<ModelEvent, ModelError>>) -> Result<(Vec<String>, ModelOutput), ModelError> {
    let (last, before) = events.split_last().expect("a stream never ends in silence");
    let deltas: Vec<String> = before
        .iter()
        .map(|event| match event {
            Ok(ModelEvent::TextDelta(text)) => text.clone(),
            other => panic!("only text comes before the end, not {other:?}"),
        })
        .collect();
    match last {
        Ok(ModelEvent::Done(output)) => {
            assert_eq!(deltas.concat(), output.text, "the text is the concatenation of the deltas");
            Ok((deltas, (**output).clone()))
        }
        Ok(ModelEvent::TextDelta(text)) => panic!("the stream ends after {text:?}"),
        Err(error) => {
            assert!(error.message.chars().count() <= 900, "bounded: {}", error.message);
            assert!(!error.message.contains(KEY), "without secrets: {}", error.message);
            assert!(!error.message.contains(['\n', '<']), "one harmless line: {}", error.message);
            Err(error.clone())
        }
    }
}

/// One line that says what came of a call.
pub(crate) fn describe(outcome: &Result<(Vec<String>, ModelOutput), ModelError>) -> String {
    match outcome {
        Ok((_, output)) => describe_output(output),
        Err(error) => {
            let kind = match &error.kind {
                ModelErrorKind::Retryable { after: None } => "retryable".to_owned(),
                ModelErrorKind::Retryable { after: Some(after) } => format!("retryable after {after:?}"),
                other => format!("{other:?}"),
            };
            let status = error.status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
            let id = error.request_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
            format!("{kind}, {status}{id}")
        }
    }
}

fn describe_output(output: &ModelOutput) -> String {
    let mut parts = Vec::new();
    if !output.text.is_empty() {
        parts.push(format!("{:?}", output.text));
    }
    parts
        .extend(output.calls.iter().map(|call| format!("{} {} {}", call.call_id, call.name, call.arguments)));
    parts.extend(output.refusal.iter().map(|text| format!("refusal {text:?}")));
    parts.push(format!("{:?}", output.finish));
    let Usage { input, cached, cache_written, output: written } = output.usage;
    let counts = [("in", input), ("cached", cached), ("wrote", cache_written), ("out", written)];
    parts.extend(counts.iter().filter_map(|(name, count)| Some(format!("{name} {}", (*count)?))));
    parts.join(", ")
}
