//! A script out of its value: what each field means, and everything that can be wrong with it.

use std::time::Duration;

use harness_model::{Finish, Usage, limits::CALLS_PER_TURN_MAX};
use harness_ports::ModelErrorKind;
use serde_json::Value;

use super::{
    ScriptProblem,
    fields::{Fields, Problems},
    script::{Arguments, Chunk, End, Last, Outcome, ResultMatch, Script, ScriptedCall, Turn, When},
    source::{Source, Step},
};

/// Turns of one script.
const TURNS_MAX: usize = 1_000;
/// What a model can read when the script does not say.
const CONTEXT_WINDOW_TOKENS: u64 = 128_000;

/// Reads a script, or says everything that is wrong with it.
pub(super) fn script(source: &Source<'_>) -> Result<Script, Vec<ScriptProblem>> {
    let value = source.value()?;
    let mut problems = Problems::default();
    let script = whole_script(&value, &mut problems);
    let problems = problems.located(source);
    match script {
        Some(script) if problems.is_empty() => Ok(script),
        Some(_) | None => Err(problems),
    }
}

fn whole_script(value: &Value, problems: &mut Problems) -> Option<Script> {
    let mut fields = Fields::of(value, Vec::new(), problems)?;
    let model = fields.filled_text("model").unwrap_or_else(|| "scripted".to_owned());
    let window = fields.whole("context_window_tokens", 1, u64::MAX);
    if !fields.has("turns") {
        fields.problem("there are no `turns`");
    }
    let mut always = None;
    let mut count = 0;
    let turns = fields.one_or_more("turns", |fields, value, path| {
        count += 1;
        if count > TURNS_MAX {
            if count == TURNS_MAX + 1 {
                fields.problem_at(path, format!("there are more than {TURNS_MAX} turns"));
            }
            return None;
        }
        if always == Some(count - 1) {
            let message = "never reached: the turn before has no `when` and answers everything";
            fields.problem_at(path.clone(), message);
        }
        if value.get("when").is_none_or(|when| when.as_object().is_some_and(serde_json::Map::is_empty)) {
            always.get_or_insert(count);
        }
        fields.read_table(value, path, turn)
    });
    fields.finish();
    Some(Script { model, context_window_tokens: window.unwrap_or(CONTEXT_WINDOW_TOKENS), turns })
}

fn turn(fields: &mut Fields<'_, '_>) -> Turn {
    let when = fields.table("when", conditions).unwrap_or_default();
    let expect = fields.table("expect", conditions).unwrap_or_default();
    check_kind(fields);
    let delay = fields.millis("delay_ms").unwrap_or_default();
    let mut chunks = chunks(fields);
    let outcome = outcome(fields);
    // The wait is before whatever comes first.
    let end_delay = match chunks.first_mut() {
        Some(first) => {
            first.delay += delay;
            Duration::ZERO
        }
        None => delay,
    };
    Turn { when, expect, chunks, end: End { delay: end_delay, outcome } }
}

/// A turn answers, refuses, fails or stays empty, and only one of these.
fn check_kind(fields: &mut Fields<'_, '_>) {
    let ends = ["refusal", "error", "empty"];
    let ends: Vec<&str> = ends.into_iter().filter(|name| fields.has(name)).collect();
    if !["text", "chunks", "calls"].iter().any(|name| fields.has(name)) && ends.is_empty() {
        fields.problem("the turn does nothing: give it text, chunks, calls, refusal, error, or empty = true");
    }
    if fields.has("text") && fields.has("chunks") {
        fields.field_problem("chunks", "`text` and `chunks` are two ways to write the same; keep one");
    }
    if let [first, second, ..] = ends.as_slice() {
        fields.field_problem(second, format!("`{second}` and `{first}` exclude each other"));
    }
    for end in ends {
        let excluded: &[&str] = match end {
            "refusal" => &["calls", "finish"],
            "error" => &["calls", "finish", "usage"],
            _ => &["text", "chunks", "calls", "finish", "usage"],
        };
        for name in excluded.iter().filter(|name| fields.has(name)).copied().collect::<Vec<_>>() {
            fields.field_problem(name, format!("`{name}` has no place beside `{end}`"));
        }
    }
}

fn chunks(fields: &mut Fields<'_, '_>) -> Vec<Chunk> {
    let between = fields.millis("chunk_delay_ms");
    if between.is_some() && !fields.has("chunks") {
        fields.field_problem("chunk_delay_ms", "`chunk_delay_ms` needs `chunks`");
    }
    let between = between.unwrap_or_default();
    let text = fields.filled_text("text").map(|text| Chunk { delay: Duration::ZERO, text });
    let pieces = fields.one_or_more("chunks", |fields, value, path| match value {
        Value::String(text) => Some(Chunk { delay: between, text: text.clone() }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => fields
            .read_table(value, path, |piece| Chunk {
                delay: piece.millis("delay_ms").unwrap_or(between),
                text: piece.required_text("text"),
            }),
    });
    text.into_iter().chain(pieces).collect()
}

fn outcome(fields: &mut Fields<'_, '_>) -> Outcome {
    let calls = fields.one_or_more("calls", |fields, value, path| fields.read_table(value, path, call));
    if calls.len() > CALLS_PER_TURN_MAX {
        fields.field_problem("calls", format!("a turn has at most {CALLS_PER_TURN_MAX} calls"));
    }
    let ids: Vec<&String> = calls.iter().filter_map(|call| call.call_id.as_ref()).collect();
    if ids.iter().enumerate().any(|(at, id)| ids[..at].contains(id)) {
        fields.field_problem("calls", "two calls of one turn have the same `call_id`");
    }
    let refusal = fields.filled_text("refusal");
    let usage = fields.table("usage", usage).unwrap_or_default();
    let finish = fields.word("finish", &[("stop", Finish::Stop), ("length", Finish::Length)]);
    if finish.is_some() && !calls.is_empty() {
        fields.field_problem("finish", "`finish` has no place beside `calls`");
    }
    let error = fields.table("error", error);
    let empty = fields.truth("empty");
    if empty == Some(false) {
        fields.field_problem("empty", "`empty` is true, or left out");
    }
    if let Some(error) = error {
        return error;
    }
    if empty.is_some() {
        let message = "the answer holds no text, no tool call and no refusal".to_owned();
        return Outcome::Error { kind: ModelErrorKind::Empty, message, status: None };
    }
    let finish = match finish {
        _ if refusal.is_some() => Finish::Refusal,
        _ if !calls.is_empty() => Finish::ToolCalls,
        other => other.unwrap_or(Finish::Stop),
    };
    Outcome::Answer { calls, refusal, finish, usage }
}

fn call(fields: &mut Fields<'_, '_>) -> ScriptedCall {
    let name = fields.required_text("name");
    let call_id = fields.filled_text("call_id");
    let arguments = match fields.value("arguments") {
        None => Arguments::Object(serde_json::Map::new()),
        Some(Value::Object(map)) => Arguments::Object(map.clone()),
        Some(Value::String(text)) => Arguments::Verbatim(text.clone()),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            fields.field_problem("arguments", "`arguments` is a table, or text that is sent as it is");
            Arguments::Object(serde_json::Map::new())
        }
    };
    ScriptedCall { name, call_id, arguments }
}

fn usage(fields: &mut Fields<'_, '_>) -> Usage {
    Usage {
        input: fields.whole("input", 0, u64::MAX),
        cached: fields.whole("cached", 0, u64::MAX),
        cache_written: fields.whole("cache_written", 0, u64::MAX),
        output: fields.whole("output", 0, u64::MAX),
    }
}

fn error(fields: &mut Fields<'_, '_>) -> Outcome {
    let classes = [
        ("retryable", ModelErrorKind::Retryable { after: None }),
        ("quota", ModelErrorKind::Quota),
        ("auth", ModelErrorKind::Auth),
        ("context_overflow", ModelErrorKind::ContextOverflow),
        ("invalid_request", ModelErrorKind::InvalidRequest),
        ("unparseable", ModelErrorKind::Unparseable),
        ("empty", ModelErrorKind::Empty),
    ];
    if !fields.has("class") {
        fields.problem("`class` is missing");
    }
    let class = fields.word("class", &classes);
    let after = fields.millis("after_ms");
    let kind = match class {
        Some(ModelErrorKind::Retryable { .. }) => ModelErrorKind::Retryable { after },
        Some(other) => other,
        // A problem is noted already; the turn is never played.
        None => ModelErrorKind::Retryable { after },
    };
    if after.is_some() && !matches!(kind, ModelErrorKind::Retryable { .. }) {
        fields.field_problem("after_ms", "`after_ms` belongs to the class `retryable`");
    }
    let message = fields.filled_text("message").unwrap_or_else(|| "an error of the script".to_owned());
    let status = fields.whole("status", 100, 599).and_then(|status| u16::try_from(status).ok());
    Outcome::Error { kind, message, status }
}

fn conditions(fields: &mut Fields<'_, '_>) -> When {
    When {
        text_contains: fields.filled_text("text_contains"),
        text_equals: fields.filled_text("text_equals"),
        message_id_prefix: fields.filled_text("message_id_prefix"),
        turn: fields.whole("turn", 1, u64::from(u32::MAX)).and_then(|turn| u32::try_from(turn).ok()),
        last_is: fields.word("last_is", &[("user", Last::User), ("tool_result", Last::ToolResult)]),
        asked: fields.one_or_more("asked", |fields, value, path| tool_name(fields, value, path)),
        tool_result: results(fields, "tool_result"),
        last_tool_result: results(fields, "last_tool_result"),
        shown_contains: fields.filled_text("shown_contains"),
        nowhere_contains: fields.filled_text("nowhere_contains"),
        instructions_contain: fields.filled_text("instructions_contain"),
    }
}

fn tool_name(fields: &mut Fields<'_, '_>, value: &Value, path: Vec<Step>) -> Option<String> {
    let name = value.as_str().filter(|name| !name.is_empty());
    if name.is_none() {
        fields.problem_at(path, "the name of a tool is expected here");
    }
    name.map(str::to_owned)
}

fn results(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<ResultMatch> {
    fields.one_or_more(name, |fields, value, path| {
        fields.read_table(value, path, |result| ResultMatch {
            name: result.required_text("name"),
            contains: result.filled_text("contains"),
        })
    })
}
