//! The request body: roles take turns, results come first in their message, and nothing is empty.

use harness_model::{Finish, ModelOutput, RequestedCall};
use harness_ports::{InputItem, ModelRequest, ToolDefinition};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{PAUSE_TURN, RAW_KIND, cache};
use crate::{
    EndpointConfig,
    call_ids::WireCallIds,
    calls,
    conversation::{EncodeError, description, failure_text, text_of, words_of},
    verbatim,
    wire::Asked,
};

/// Stands where the wire wants words of the user and there are none.
const NO_WORDS: &str = "(no text)";
/// Asks for more where the conversation ends with an answer; the wire wants the user to have the last word.
const GO_ON: &str = "Continue.";

/// What changes from turn to turn stands last.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    output_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<Message>,
}

/// One message.
#[derive(Debug)]
pub(super) enum Message {
    /// Words and results.
    User(Vec<Value>),
    /// Blocks of earlier answers.
    Assistant(Vec<Box<RawValue>>),
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self {
            Self::User(blocks) => {
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", blocks)?;
            }
            Self::Assistant(blocks) => {
                map.serialize_entry("role", "assistant")?;
                map.serialize_entry("content", blocks)?;
            }
        }
        map.end()
    }
}

#[expect(clippy::expect_used, reason = "JSON values have string keys and always serialize")]
pub(super) fn body(
    request: &ModelRequest,
    asked: &Asked,
    config: &EndpointConfig,
) -> Result<Vec<u8>, EncodeError> {
    let mut messages = Conversation { asked, ids: WireCallIds::default(), messages: Vec::new() };
    request.input.iter().for_each(|item| messages.add(item));
    let mut messages = messages.finish(request.input.last());
    cache::mark_history(&mut messages);
    let (thinking, effort) = thinking(request.reasoning_effort.as_deref(), asked.max_output_tokens)?;
    // With a budget the wire wants the thinking of the answer whose results these are; another model's is not sent.
    let thinking = thinking.filter(|thinking| thinking["type"] != "enabled" || may_think(&messages));
    let mut output_config = Map::new();
    output_config.extend(effort.map(|effort| ("effort".to_owned(), effort)));
    output_config.extend(
        request
            .response_format
            .as_ref()
            .map(|schema| ("format".to_owned(), json!({"type": "json_schema", "schema": schema}))),
    );
    let mut tools: Vec<Value> = request.tools.iter().map(|tool| definition(tool, asked)).collect();
    let mut system = Vec::new();
    if !request.instructions.trim().is_empty() {
        system.push(json!({"type": "text", "text": request.instructions, "cache_control": cache::mark()}));
    } else if let Some(last) = tools.last_mut() {
        last["cache_control"] = cache::mark();
    }
    let body = Body {
        model: &asked.model,
        max_tokens: asked.max_output_tokens,
        stream: config.stream,
        thinking,
        output_config,
        tools,
        system,
        messages,
    };
    Ok(serde_json::to_vec(&body).expect("JSON values with string keys always serialize"))
}

/// How much the model thinks. A number is a budget of tokens, for models that take one; a word is an effort, for those
/// that decide themselves how long they think.
fn thinking(effort: Option<&str>, max: u32) -> Result<(Option<Value>, Option<Value>), EncodeError> {
    let Some(effort) = effort else { return Ok((None, None)) };
    match effort.parse::<u32>() {
        Ok(budget) if budget >= max => Err(EncodeError::ThinkingBudget { budget, max }),
        Ok(budget) => Ok((Some(json!({"type": "enabled", "budget_tokens": budget})), None)),
        Err(_) => Ok((Some(json!({"type": "adaptive"})), Some(effort.into()))),
    }
}

/// Whether the conversation does not go on from calls that were made without thinking.
fn may_think(messages: &[Message]) -> bool {
    let [.., Message::Assistant(answer), Message::User(results)] = messages else { return true };
    let thinks = |block: &RawValue| {
        let block: Value = serde_json::from_str(block.get()).unwrap_or_default();
        matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
    };
    results.first().is_none_or(|first| first["type"] != "tool_result")
        || answer.first().is_some_and(|first| thinks(first))
}

fn definition(tool: &ToolDefinition, asked: &Asked) -> Value {
    json!({
        "name": asked.names.wire(&tool.name),
        "description": description(tool, &asked.names),
        "input_schema": tool.input_schema,
    })
}

/// The conversation as messages, one after the other.
struct Conversation<'a> {
    asked: &'a Asked,
    ids: WireCallIds,
    messages: Vec<Message>,
}

impl Conversation<'_> {
    fn add(&mut self, item: &InputItem) {
        match item {
            InputItem::User { parts } => {
                let text = text_of(parts);
                let text = if text.trim().is_empty() { NO_WORDS.to_owned() } else { text };
                self.push_user(json!({"type": "text", "text": text}));
            }
            InputItem::Model(output) => {
                let blocks = self.verbatim(output).unwrap_or_else(|| self.anew(output));
                self.push_assistant(blocks);
            }
            InputItem::ToolResult { call_id, is_error, parts, .. } => {
                let text = if *is_error { failure_text(parts) } else { text_of(parts) };
                let mut block = json!({"type": "tool_result", "tool_use_id": self.ids.of_result(call_id)});
                if !text.trim().is_empty() {
                    block["content"] = text.into();
                }
                if *is_error {
                    block["is_error"] = true.into();
                }
                self.push_user(block);
            }
        }
    }

    /// The first and the last word are the user's, except that a paused answer goes on where it stopped.
    fn finish(mut self, last: Option<&InputItem>) -> Vec<Message> {
        let is_paused = matches!(last, Some(InputItem::Model(output)) if output.finish == Finish::Other(PAUSE_TURN.to_owned()));
        if !is_paused && !matches!(self.messages.last(), Some(Message::User(_))) {
            self.push_user(json!({"type": "text", "text": GO_ON}));
        }
        if matches!(self.messages.first(), Some(Message::Assistant(_))) {
            self.messages.insert(0, Message::User(vec![json!({"type": "text", "text": NO_WORDS})]));
        }
        self.messages
    }

    /// The provider's own blocks of an answer, when there are some and they fit it.
    fn verbatim(&mut self, output: &ModelOutput) -> Option<Vec<Box<RawValue>>> {
        let kept = verbatim::items_of(output, &self.asked.provider, RAW_KIND);
        let kept: Vec<_> = kept.map(|(model, item)| (model, item, verbatim::value_of(item))).collect();
        let is_call = |block: &Value| block["type"] == "tool_use";
        let calls = kept.iter().filter(|(_, _, block)| is_call(block)).count();
        if kept.is_empty() || calls != output.calls.len() || output.refusal.is_some() {
            return None;
        }
        let mut calls = output.calls.iter();
        let mut blocks = Vec::with_capacity(kept.len());
        for (model, item, block) in kept {
            match block["type"].as_str() {
                Some("tool_use") => {
                    let fields = block.as_object()?;
                    blocks.push(self.tool_use(fields, calls.next()?));
                }
                // Sealed thinking means something only to its model, and only as long as it is whole.
                Some("thinking" | "redacted_thinking")
                    if model != self.asked.model || verbatim::is_masked(&block) => {}
                Some("text") if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => {}
                _ => blocks.extend(verbatim::restored(item)),
            }
        }
        Some(blocks)
    }

    fn anew(&mut self, output: &ModelOutput) -> Vec<Box<RawValue>> {
        let mut blocks = Vec::new();
        let words = words_of(output);
        if !words.trim().is_empty() {
            blocks.extend(to_raw_value(&json!({"type": "text", "text": words})).ok());
        }
        let fields = Map::from_iter([("type".to_owned(), "tool_use".into())]);
        for call in &output.calls {
            blocks.push(self.tool_use(&fields, call));
        }
        blocks
    }

    /// A call with its exact arguments, and whatever else the provider said about it.
    #[expect(clippy::expect_used, reason = "JSON values have string keys and always serialize")]
    fn tool_use(&mut self, fields: &Map<String, Value>, call: &RequestedCall) -> Box<RawValue> {
        let mut fields = fields.clone();
        fields.insert("id".to_owned(), self.ids.of_call(&call.call_id).into());
        fields.insert("name".to_owned(), self.asked.names.wire(&call.name).into());
        let tool_use = ToolUse { fields, input: calls::arguments_object(&call.arguments) };
        to_raw_value(&tool_use).expect("JSON values with string keys always serialize")
    }

    fn push_user(&mut self, block: Value) {
        match self.messages.last_mut() {
            Some(Message::User(blocks)) => blocks.push(block),
            _ => self.messages.push(Message::User(vec![block])),
        }
    }

    fn push_assistant(&mut self, blocks: Vec<Box<RawValue>>) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(Message::Assistant(before)) => before.extend(blocks),
            _ => self.messages.push(Message::Assistant(blocks)),
        }
    }
}

/// A call whose input keeps its digits.
struct ToolUse {
    fields: Map<String, Value>,
    input: Box<RawValue>,
}

impl Serialize for ToolUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len() + 1))?;
        for (key, value) in &self.fields {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("input", &self.input)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_is_a_word_or_a_budget() {
        let shown = |effort| thinking(effort, 2_000).map(|(thinking, effort)| json!([thinking, effort]));
        assert_eq!(shown(None), Ok(json!([null, null])));
        assert_eq!(shown(Some("low")), Ok(json!([{"type": "adaptive"}, "low"])));
        assert_eq!(shown(Some("1024")), Ok(json!([{"type": "enabled", "budget_tokens": 1024}, null])));
        assert!(shown(Some("2000")).is_err());
    }
}
