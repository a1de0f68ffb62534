//! The request body: the conversation in the wire's terms.

use std::collections::HashSet;

use harness_model::{CallId, ItemPart, ModelOutput};
use harness_ports::{InputItem, ModelRequest, ToolDefinition};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ChatCompletionsConfig, answer::EXTRA_ITEM};
use crate::tool_names::ToolNames;

/// Fields of a provider's own that belong back into an assistant message. Servers refuse others they once sent.
const REPLAYED: [&str; 2] = ["reasoning_details", "extra_content"];
/// Wanted back beside tool calls, refused or useless without them.
const REPLAYED_WITH_CALLS: &str = "reasoning_content";

/// Why a request cannot be put into this wire's terms. The texts are ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("the model {0:?} is not one of the models this provider may be asked for")]
    UnknownModel(String),
    #[error("the conversation has two calls {0} in one answer")]
    RepeatedCall(CallId),
    #[error("the conversation has a result for {0}, which no open call asked for")]
    UnexpectedResult(CallId),
    #[error("the conversation has no result for the call {0}")]
    MissingResult(CallId),
}

/// A body and what its answer has to be read with.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) body: Vec<u8>,
    pub(super) names: ToolNames,
    pub(super) model: String,
    pub(super) max_output_tokens: u32,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

/// Encodes a request. Equal requests give equal bytes, and a longer conversation begins with the same messages.
#[expect(clippy::expect_used, reason = "JSON values have string keys and always serialize")]
pub(super) fn encode(request: &ModelRequest, config: &ChatCompletionsConfig) -> Result<Encoded, EncodeError> {
    check_results(&request.input)?;
    let model = request.model.as_ref().unwrap_or(&config.model);
    if *model != config.model && !config.models.contains(model) {
        return Err(EncodeError::UnknownModel(model.clone()));
    }
    let names = names_of(request);
    let max_output_tokens = request.max_output_tokens.min(config.max_output_tokens);
    let mut messages = Vec::with_capacity(request.input.len() + 1);
    if !request.instructions.is_empty() {
        messages.push(json!({"role": "system", "content": request.instructions}));
    }
    messages.extend(request.input.iter().map(|item| message(item, &names, &config.name)));
    let body = Body {
        model,
        messages,
        tools: request.tools.iter().map(|tool| definition(tool, &names)).collect(),
        response_format: request.response_format.as_ref().map(|schema| {
            json!({"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": true}})
        }),
        max_tokens: max_output_tokens,
        reasoning_effort: request.reasoning_effort.as_deref(),
        stream: config.stream,
        stream_options: config.stream.then(|| json!({"include_usage": true})),
    };
    let body = serde_json::to_vec(&body).expect("JSON values with string keys always serialize");
    Ok(Encoded { body, names, model: model.clone(), max_output_tokens })
}

/// Checks that the results of an answer's calls follow it directly, one for each.
fn check_results(input: &[InputItem]) -> Result<(), EncodeError> {
    let mut open: Vec<&CallId> = Vec::new();
    for item in input {
        match item {
            InputItem::ToolResult { call_id, .. } => {
                let at = open.iter().position(|open| *open == call_id);
                open.swap_remove(at.ok_or_else(|| EncodeError::UnexpectedResult(call_id.clone()))?);
            }
            InputItem::User { .. } | InputItem::Model(_) => all_answered(&open)?,
        }
        if let InputItem::Model(output) = item {
            let mut seen = HashSet::new();
            for call in &output.calls {
                if !seen.insert(&call.call_id) {
                    return Err(EncodeError::RepeatedCall(call.call_id.clone()));
                }
                open.push(&call.call_id);
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &[&CallId]) -> Result<(), EncodeError> {
    open.first().map_or(Ok(()), |call_id| Err(EncodeError::MissingResult((*call_id).clone())))
}

/// Names of the offered tools first, so that they do not depend on the conversation.
fn names_of(request: &ModelRequest) -> ToolNames {
    let offered = request.tools.iter().map(|tool| tool.name.as_str());
    let called = request.input.iter().flat_map(|item| match item {
        InputItem::Model(output) => output.calls.as_slice(),
        InputItem::User { .. } | InputItem::ToolResult { .. } => &[],
    });
    ToolNames::new(offered.chain(called.map(|call| call.name.as_str())))
}

fn message(item: &InputItem, names: &ToolNames, provider: &str) -> Value {
    match item {
        InputItem::User { parts } => json!({"role": "user", "content": text_of(parts)}),
        InputItem::Model(output) => assistant(output, names, provider),
        InputItem::ToolResult { call_id, is_error, parts, .. } => {
            let text = text_of(parts);
            let text = if *is_error && text.is_empty() {
                "The call failed without a word.".to_owned()
            } else {
                text
            };
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
    let words =
        if output.text.is_empty() { output.refusal.as_deref().unwrap_or_default() } else { &output.text };
    let content = if words.is_empty() && !output.calls.is_empty() { Value::Null } else { words.into() };
    message.insert("content".to_owned(), content);
    if !output.calls.is_empty() {
        let calls = output.calls.iter().enumerate().map(|(at, call)| {
            let function = json!({"name": names.wire(&call.name), "arguments": call.arguments});
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
    let wire = names.wire(&tool.name);
    let description = if wire == tool.name {
        tool.description.clone()
    } else {
        // The conversation speaks of registry names; the model has to know that they are the same tool.
        format!("{} (registry name: {})", tool.description, tool.name)
    };
    let function = json!({
        "name": wire,
        "description": description,
        "parameters": tool.input_schema,
        "strict": false,
    });
    json!({"type": "function", "function": function})
}

/// Parts as text, one a line. This wire carries no bytes; what cannot be shown is named.
fn text_of(parts: &[ItemPart]) -> String {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            ItemPart::Text(text) => text.clone(),
            ItemPart::Data(value) => {
                let mut value = value.clone();
                value.sort_all_objects();
                value.to_string()
            }
            ItemPart::Binary { media_type, block } => {
                format!("[{media_type}, {} bytes, not shown]", block.bytes)
            }
            ItemPart::Link { uri, media_type: Some(media_type) } => format!("[{uri} ({media_type})]"),
            ItemPart::Link { uri, media_type: None } => format!("[{uri}]"),
        })
        .collect();
    texts.join("\n")
}
