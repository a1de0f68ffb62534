//! What every request has to keep to, wire by wire.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::request::Parts;
use serde_json::Value;

const CHAT_KEYS: &[&str] = &[
    "model",
    "max_tokens",
    "reasoning_effort",
    "stream",
    "stream_options",
    "response_format",
    "tools",
    "messages",
];
const RESPONSES_KEYS: &[&str] = &[
    "model",
    "instructions",
    "max_output_tokens",
    "reasoning",
    "include",
    "prompt_cache_key",
    "store",
    "stream",
    "text",
    "tools",
    "input",
];
const MESSAGES_KEYS: &[&str] =
    &["model", "max_tokens", "stream", "thinking", "output_config", "tools", "system", "messages"];

/// The rules that a request breaks.
pub(super) fn violations(parts: &Parts, body: &[u8], key: Option<&str>) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut found = Vec::new();
    let path = parts.uri.path();
    let known = match path {
        "/v1/chat/completions" => {
            chat(&body, &mut found);
            CHAT_KEYS
        }
        "/v1/responses" => {
            responses(&body, &mut found);
            RESPONSES_KEYS
        }
        "/v1/messages" => {
            messages(&body, &mut found);
            MESSAGES_KEYS
        }
        _ => &[],
    };
    if parts.method != "POST" || known.is_empty() {
        found.push(format!("{} {}", parts.method, parts.uri));
    }
    let keys = body.as_object().into_iter().flat_map(|map| map.keys());
    found.extend(keys.filter(|key| !known.contains(&key.as_str())).map(|key| format!("unknown key {key}")));
    if body["stream"].as_bool().is_none() || body["model"].as_str().is_none() {
        found.push("model or stream is missing".to_owned());
    }
    headers(parts, path, key, &mut found);
    found
}

fn headers(parts: &Parts, path: &str, key: Option<&str>, found: &mut Vec<String>) {
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let bearer = key.map(|key| format!("Bearer {key}"));
    let plain = key.map(str::to_owned);
    let expected = if path == "/v1/messages" { (None, plain) } else { (bearer, None) };
    let sent = (header("authorization"), header("x-api-key"));
    if sent != expected {
        found.push(format!("keys {sent:?}"));
    }
    if (path == "/v1/messages") != (header("anthropic-version").as_deref() == Some("2023-06-01")) {
        found.push("anthropic-version".to_owned());
    }
    for name in ["openai-organization", "openai-project", "cookie"] {
        found.extend(header(name).map(|_| format!("header {name}")));
    }
}

fn chat(body: &Value, found: &mut Vec<String>) {
    if body["max_tokens"].as_u64().is_none() {
        found.push("max_tokens is missing".to_owned());
    }
    if body["stream"].as_bool() != Some(body.get("stream_options").is_some()) {
        found.push("stream_options goes with stream".to_owned());
    }
    for tool in list(&body["tools"]) {
        check_name(&tool["function"]["name"], found);
    }
    let mut open = BTreeSet::new();
    for message in list(&body["messages"]) {
        if message["role"] == "tool" {
            close(&mut open, &message["tool_call_id"], found);
            continue;
        }
        all_closed(&open, found);
        for call in list(&message["tool_calls"]) {
            check_name(&call["function"]["name"], found);
            check_text(&call["function"]["arguments"], found);
            open.insert(text(&call["id"]));
        }
    }
    all_closed(&open, found);
}

fn responses(body: &Value, found: &mut Vec<String>) {
    if body["max_output_tokens"].as_u64().is_none() || body["store"] != false {
        found.push("max_output_tokens is missing, or something is stored".to_owned());
    }
    if body["prompt_cache_key"].as_str().is_some_and(|key| key.len() > 64) {
        found.push("prompt_cache_key is too long".to_owned());
    }
    for tool in list(&body["tools"]) {
        check_name(&tool["name"], found);
    }
    let (mut open, mut all) = (BTreeSet::new(), BTreeSet::new());
    for item in list(&body["input"]) {
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => {
                check_name(&item["name"], found);
                check_text(&item["arguments"], found);
                let id = text(&item["call_id"]);
                if id.len() > 64 || !all.insert(id.clone()) {
                    found.push(format!("call id {id:?} is too long or not new"));
                }
                open.insert(id);
            }
            "function_call_output" => {
                check_text(&item["output"], found);
                close(&mut open, &item["call_id"], found);
            }
            "reasoning" => check_text(&item["encrypted_content"], found),
            "message" if item["role"] == "user" => all_closed(&open, found),
            _ => {}
        }
    }
    all_closed(&open, found);
}

fn messages(body: &Value, found: &mut Vec<String>) {
    if body["max_tokens"].as_u64().is_none() {
        found.push("max_tokens is missing".to_owned());
    }
    let marks = body.to_string().matches("\"cache_control\":{\"type\":\"ephemeral\"}").count();
    if !(1..=4).contains(&marks) {
        found.push(format!("{marks} cache marks"));
    }
    for tool in list(&body["tools"]) {
        check_name(&tool["name"], found);
    }
    let mut role_next = "user";
    let mut open = BTreeSet::new();
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for message in list(&body["messages"]) {
        if message["role"] != role_next {
            found.push(format!("{} speaks out of turn", message["role"]));
        }
        role_next = if message["role"] == "user" { "assistant" } else { "user" };
        let blocks = list(&message["content"]);
        if blocks.is_empty() {
            found.push("a message without content".to_owned());
        }
        for block in blocks {
            // The results of calls come before words of the user.
            if message["role"] == "user" && block["type"] == "text" {
                all_closed(&open, found);
            }
            message_block(block, &mut open, &mut all, found);
        }
        if message["role"] == "user" {
            all_closed(&open, found);
        }
    }
    let paused =
        list(&body["messages"]).last().is_some_and(|last| last.to_string().contains("server_tool_use"));
    if role_next == "user" && !paused {
        found.push("the assistant has the last word".to_owned());
    }
    found.extend(
        all.into_iter().filter(|(_, times)| *times > 1).map(|(id, _)| format!("call id {id:?} twice")),
    );
}

fn message_block(
    block: &Value,
    open: &mut BTreeSet<String>,
    all: &mut BTreeMap<String, usize>,
    found: &mut Vec<String>,
) {
    match block["type"].as_str().unwrap_or_default() {
        "text" if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => {
            found.push("an empty text".to_owned());
        }
        "tool_use" => {
            check_name(&block["name"], found);
            if !block["input"].is_object() {
                found.push(format!("input {}", block["input"]));
            }
            let id = text(&block["id"]);
            *all.entry(id.clone()).or_default() += 1;
            open.insert(id);
        }
        "tool_result" => close(open, &block["tool_use_id"], found),
        "thinking" => {
            check_text(&block["thinking"], found);
            check_text(&block["signature"], found);
        }
        _ => {}
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn check_text(value: &Value, found: &mut Vec<String>) {
    if !value.is_string() {
        found.push(format!("text is wanted, not {value}"));
    }
}

fn check_name(name: &Value, found: &mut Vec<String>) {
    let valid = name.as_str().is_some_and(|name| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    });
    if !valid {
        found.push(format!("tool name {name}"));
    }
}

/// The results of an answer's calls follow it, exactly one each.
fn close(open: &mut BTreeSet<String>, id: &Value, found: &mut Vec<String>) {
    if !open.remove(&text(id)) {
        found.push(format!("unexpected result for {id}"));
    }
}

fn all_closed(open: &BTreeSet<String>, found: &mut Vec<String>) {
    if !open.is_empty() {
        found.push(format!("no results for {open:?}"));
    }
}
