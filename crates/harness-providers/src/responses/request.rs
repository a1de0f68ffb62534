//! The request body: the conversation as items, those of earlier answers as they came.

use harness_model::{BlockId, ModelOutput};
use harness_ports::{InputItem, ModelRequest, ToolDefinition};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{RAW_KIND, Responses};
use crate::{
    EndpointConfig,
    call_ids::WireCallIds,
    calls::arguments_object,
    conversation::{description, failure_text, text_of, words_of},
    tool_names::ToolNames,
    verbatim,
    wire::Asked,
};

/// Characters of a cache key.
const CACHE_KEY_CHARS_MAX: usize = 64;

/// What changes from turn to turn stands last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "str::is_empty")]
    prompt_cache_key: &'a str,
    store: bool,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    input: Vec<Box<RawValue>>,
}

#[expect(clippy::expect_used, reason = "JSON values have string keys and always serialize")]
pub(super) fn body(
    request: &ModelRequest,
    asked: &Asked,
    config: &EndpointConfig,
    wire: &Responses,
) -> Vec<u8> {
    let mut input = Input { asked, ids: WireCallIds::default(), items: Vec::new() };
    request.input.iter().for_each(|item| input.add(item));
    let digest = BlockId::of(request.cache_key.as_bytes());
    let fits = request.cache_key.chars().count() <= CACHE_KEY_CHARS_MAX;
    let body = Body {
        model: &asked.model,
        instructions: &request.instructions,
        max_output_tokens: asked.max_output_tokens,
        reasoning: request.reasoning_effort.as_ref().map(|effort| json!({"effort": effort})),
        include: wire.encrypted_reasoning.then_some(["reasoning.encrypted_content"]),
        prompt_cache_key: if fits { &request.cache_key } else { digest.as_str() },
        store: false,
        stream: config.stream,
        text: request.response_format.as_ref().map(|schema| {
            json!({"format": {"type": "json_schema", "name": "response", "schema": schema, "strict": true}})
        }),
        tools: request.tools.iter().map(|tool| definition(tool, &asked.names)).collect(),
        input: input.items,
    };
    serde_json::to_vec(&body).expect("JSON values with string keys always serialize")
}

/// The conversation, item by item.
struct Input<'a> {
    asked: &'a Asked,
    ids: WireCallIds,
    items: Vec<Box<RawValue>>,
}

impl Input<'_> {
    fn add(&mut self, item: &InputItem) {
        match item {
            InputItem::User { parts } => self.push(&json!({"role": "user", "content": text_of(parts)})),
            InputItem::Model(output) => {
                if !self.add_verbatim(output) {
                    self.add_anew(output);
                }
            }
            InputItem::ToolResult { call_id, is_error, parts, .. } => {
                let text = if *is_error { failure_text(parts) } else { text_of(parts) };
                let call_id = self.ids.of_result(call_id);
                self.push(&json!({"type": "function_call_output", "call_id": call_id, "output": text}));
            }
        }
    }

    /// Adds the provider's own items of an answer; `false`, and nothing, when there are none that fit it.
    fn add_verbatim(&mut self, output: &ModelOutput) -> bool {
        let raw = verbatim::items_of(output, &self.asked.provider, RAW_KIND);
        let raw: Vec<(&str, &Value, Value)> =
            raw.map(|(model, item)| (model, item, verbatim::value_of(item))).collect();
        let is_call = |item: &Value| item["type"] == "function_call";
        let calls = raw.iter().filter(|(_, _, item)| is_call(item)).count();
        if raw.is_empty() || calls != output.calls.len() || output.refusal.is_some() {
            return false;
        }
        // Items refer to the reasoning before them by their ids: without it they have to be written anew.
        if !raw.iter().all(|(model, _, item)| item["type"] != "reasoning" || self.is_replayable(model, item))
        {
            return false;
        }
        let mut calls = output.calls.iter();
        for (_, kept, mut item) in raw {
            if is_call(&item) {
                // The call may have got another id, and its arguments may have lost a secret.
                let (Some(call), Some(fields)) = (calls.next(), item.as_object_mut()) else { continue };
                fields.insert("call_id".to_owned(), self.ids.of_call(&call.call_id).into());
                fields.insert("name".to_owned(), self.asked.names.wire(&call.name).into());
                fields.insert("arguments".to_owned(), arguments_object(&call.arguments).get().into());
                self.push(&item);
            } else {
                self.items.extend(verbatim::restored(kept));
            }
        }
        true
    }

    /// Reasoning means something only to its model, and only when all of it is there: nothing is kept at the provider
    /// that an id alone could refer to.
    fn is_replayable(&self, model: &str, item: &Value) -> bool {
        let sealed = item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
        sealed && model == self.asked.model && !verbatim::is_masked(item)
    }

    fn add_anew(&mut self, output: &ModelOutput) {
        let words = words_of(output);
        if !words.is_empty() {
            self.push(&json!({"type": "message", "role": "assistant", "content": words}));
        }
        for call in &output.calls {
            let (call_id, name) = (self.ids.of_call(&call.call_id), self.asked.names.wire(&call.name));
            self.push(&json!({
                "type": "function_call",
                "call_id": call_id,
                "name": name,
                "arguments": arguments_object(&call.arguments).get(),
            }));
        }
    }

    #[expect(clippy::expect_used, reason = "a JSON value has string keys and always serializes")]
    fn push(&mut self, item: &Value) {
        self.items.push(to_raw_value(item).expect("a JSON value always serializes"));
    }
}

fn definition(tool: &ToolDefinition, names: &ToolNames) -> Value {
    json!({
        "type": "function",
        "name": names.wire(&tool.name),
        "description": description(tool, names),
        "parameters": tool.input_schema,
        "strict": false,
    })
}
