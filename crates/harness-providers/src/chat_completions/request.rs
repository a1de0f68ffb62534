//! The request body: the conversation in the wire's terms.

use harness_model::ModelOutput;
use harness_ports::{InputItem, ModelRequest, ToolDefinition};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::EXTRA_ITEM;
use crate::{
    EndpointConfig, calls,
    conversation::{description, failure_text, text_of, words_of},
    tool_names::ToolNames,
    wire::Asked,
};

/// Fields of a provider's own that belong back into an assistant message. Servers refuse others they once sent.
const REPLAYED: [&str; 2] = ["reasoning_details", "extra_content"];
/// Wanted back beside tool calls, refused or useless without them.
const REPLAYED_WITH_CALLS: &str = "reasoning_content";

/// What changes from turn to turn stands last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<Value>,
}

#[expect(clippy::expect_used, reason = "JSON values have string keys and always serialize")]
pub(super) fn body(request: &ModelRequest, asked: &Asked, config: &EndpointConfig) -> Vec<u8> {
    let names = &asked.names;
    let mut messages = Vec::with_capacity(request.input.len() + 1);
    if !request.instructions.is_empty() {
        messages.push(json!({"role": "system", "content": request.instructions}));
    }
    messages.extend(request.input.iter().map(|item| message(item, names, &config.name)));
    let body = Body {
        model: &asked.model,
        max_tokens: asked.max_output_tokens,
        reasoning_effort: request.reasoning_effort.as_deref(),
        stream: config.stream,
        stream_options: config.stream.then(|| json!({"include_usage": true})),
        response_format: request.response_format.as_ref().map(|schema| {
            json!({"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": true}})
        }),
        tools: request.tools.iter().map(|tool| definition(tool, names)).collect(),
        messages,
    };
    serde_json::to_vec(&body).expect("JSON values with string keys always serialize")
}

fn message(item: &InputItem, names: &ToolNames, provider: &str) -> Value {
    match item {
        InputItem::User { parts } => json!({"role": "user", "content": text_of(parts)}),
        InputItem::Model(output) => assistant(output, names, provider),
        InputItem::ToolResult { call_id, is_error, parts, .. } => {
            let text = if *is_error { failure_text(parts) } else { text_of(parts) };
            json!({"role": "tool", "tool_call_id": call_id.as_str(), "content": text})
        }
    }
}

fn assistant(output: &ModelOutput, names: &ToolNames, provider: &str) -> Value {
    let extra = (output.provider == provider)
        .then(|| output.raw_items.iter().find(|item| item.get("type").is_some_and(|t| t == EXTRA_ITEM)))
        .flatten();
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let words = words_of(output);
    let content = if words.is_empty() && !output.calls.is_empty() { Value::Null } else { words.into() };
    message.insert("content".to_owned(), content);
    if !output.calls.is_empty() {
        let calls = output.calls.iter().enumerate().map(|(at, call)| {
            // Some servers parse what they are sent again, and fail where the model's JSON does.
            let arguments = calls::arguments_object(&call.arguments);
            let function = json!({"name": names.wire(&call.name), "arguments": arguments.get()});
            let mut wire = Map::new();
            wire.insert("id".to_owned(), call.call_id.as_str().into());
            wire.insert("type".to_owned(), "function".into());
            wire.insert("function".to_owned(), function);
            let own = extra.and_then(|extra| extra.get("calls")?.get(at)?.as_object());
            wire.extend(own.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
            Value::Object(wire)
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    let own = extra.and_then(|extra| extra.get("message")?.as_object());
    for (key, value) in own.into_iter().flatten() {
        let with_calls = key == REPLAYED_WITH_CALLS && !output.calls.is_empty();
        if with_calls || REPLAYED.contains(&key.as_str()) {
            message.insert(key.clone(), value.clone());
        }
    }
    Value::Object(message)
}

fn definition(tool: &ToolDefinition, names: &ToolNames) -> Value {
    let function = json!({
        "name": names.wire(&tool.name),
        "description": description(tool, names),
        "parameters": tool.input_schema,
        "strict": false,
    });
    json!({"type": "function", "function": function})
}
