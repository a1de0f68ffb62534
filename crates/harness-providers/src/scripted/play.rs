//! A turn as the stream of a model call.

use std::time::Duration;

use futures::{StreamExt, stream};
use harness_model::{CallId, ItemPart, ModelOutput, RequestedCall, truncate_chars};
use harness_ports::{InputItem, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream};
use serde_json::{Map, Value};

use super::script::{Arguments, Outcome, Script, ScriptedCall, Turn};

/// Replaced by the newest message of a participant.
const MESSAGE_TEXT: &str = "{{message_text}}";
/// Characters of each text that is shown when no turn answers.
const SHOWN_CHARS_MAX: usize = 200;

type Timed = (Duration, Result<ModelEvent, ModelError>);

/// The events of the turn that answers, each after its wait.
pub(super) fn stream(script: &Script, provider: &str, request: &ModelRequest) -> ModelStream {
    let events = match script.answering(request) {
        Some(turn) => match turn.expect.unmet(request).as_slice() {
            [] => events(turn, script, provider, request),
            unmet => vec![(Duration::ZERO, Err(unexpected(unmet, provider, request)))],
        },
        None => vec![(Duration::ZERO, Err(exhausted(script, provider, request)))],
    };
    let timed = stream::iter(events).then(async |(delay, event)| {
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        event
    });
    timed.boxed()
}

fn events(turn: &Turn, script: &Script, provider: &str, request: &ModelRequest) -> Vec<Timed> {
    let said = request.meta.message_text.as_str();
    let mut text = String::new();
    let mut events: Vec<Timed> = Vec::with_capacity(turn.chunks.len() + 1);
    for chunk in &turn.chunks {
        let piece = fill(&chunk.text, said);
        text.push_str(&piece);
        events.push((chunk.delay, Ok(ModelEvent::TextDelta(piece))));
    }
    let end = match &turn.end.outcome {
        Outcome::Answer { calls, refusal, finish, usage } => {
            let calls = calls.iter().enumerate().map(|(at, call)| requested(call, at, request)).collect();
            Ok(ModelEvent::Done(Box::new(ModelOutput {
                text,
                calls,
                refusal: refusal.as_ref().map(|refusal| fill(refusal, said)),
                finish: finish.clone(),
                usage: *usage,
                model: request.model.clone().unwrap_or_else(|| script.model.clone()),
                provider: provider.to_owned(),
                request_id: None,
                raw_items: Vec::new(),
            })))
        }
        Outcome::Error { kind, message, status } => {
            let message = format!("{provider}: {message}");
            Err(ModelError { status: *status, ..ModelError::new(kind.clone(), message) })
        }
    };
    events.push((turn.end.delay, end));
    events
}

fn requested(call: &ScriptedCall, at: usize, request: &ModelRequest) -> RequestedCall {
    let arguments = match &call.arguments {
        Arguments::Object(map) => filled_map(map, &request.meta.message_text).to_string(),
        Arguments::Verbatim(text) => text.clone(),
    };
    let call_id = match &call.call_id {
        Some(id) => CallId::new(id),
        None => CallId::new(format!("call-{}-{at}", request.meta.turn)),
    };
    RequestedCall { call_id, name: call.name.clone(), arguments }
}

fn fill(template: &str, message_text: &str) -> String {
    template.replace(MESSAGE_TEXT, message_text)
}

fn filled_map(map: &Map<String, Value>, said: &str) -> Value {
    Value::Object(map.iter().map(|(key, value)| (key.clone(), filled(value, said))).collect())
}

fn filled(value: &Value, said: &str) -> Value {
    match value {
        Value::String(text) => fill(text, said).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, said)).collect(),
        Value::Object(map) => filled_map(map, said),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Says which expectations of the turn that answers were not met.
fn unexpected(unmet: &[&str], provider: &str, request: &ModelRequest) -> ModelError {
    let unmet = unmet.join(", ");
    let what =
        format!("{provider}: the turn that answers expects something else ({unmet}) than {}", seen(request));
    ModelError::new(ModelErrorKind::ScriptExhausted, what)
}

/// Says that no turn answers what the script was shown.
fn exhausted(script: &Script, provider: &str, request: &ModelRequest) -> ModelError {
    let turns = script.turns.len();
    let message = format!("{provider}: none of the {turns} turns answers {}", seen(request));
    ModelError::new(ModelErrorKind::ScriptExhausted, message)
}

/// What the script was shown, in the words that its conditions use.
fn seen(request: &ModelRequest) -> String {
    let meta = &request.meta;
    let id = meta.message_id.as_ref().map_or("none", |id| id.as_str());
    let results: Vec<&str> = request
        .input
        .iter()
        .filter_map(|item| match item {
            InputItem::ToolResult { name, .. } => Some(name.as_str()),
            InputItem::User { .. } | InputItem::Model(_) => None,
        })
        .collect();
    format!(
        "turn {}: message {:?} says {:?}; the conversation ends with {}; tool results so far: {}",
        meta.turn,
        truncate_chars(id, SHOWN_CHARS_MAX),
        truncate_chars(&meta.message_text, SHOWN_CHARS_MAX),
        ending(request.input.last()),
        if results.is_empty() {
            "none".to_owned()
        } else {
            truncate_chars(&results.join(", "), SHOWN_CHARS_MAX)
        },
    )
}

fn ending(item: Option<&InputItem>) -> String {
    match item {
        None => "nothing".to_owned(),
        Some(InputItem::User { parts }) => format!("a user item {}", shown(parts)),
        Some(InputItem::ToolResult { name, parts, .. }) => format!("a result of {name} {}", shown(parts)),
        Some(InputItem::Model(_)) => "an answer of the model".to_owned(),
    }
}

fn shown(parts: &[ItemPart]) -> String {
    let text = parts.iter().find_map(|part| match part {
        ItemPart::Text(text) => Some(text.clone()),
        ItemPart::Data(value) => Some(value.to_string()),
        ItemPart::Binary { .. } | ItemPart::Link { .. } => None,
    });
    format!("{:?}", truncate_chars(&text.unwrap_or_default(), SHOWN_CHARS_MAX))
}
