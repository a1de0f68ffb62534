//! How the bytes of an answer arrive.

use std::time::Duration;

use futures::FutureExt;
use harness_providers::{EndpointConfig, HttpProvider};
use serde_json::{Value, json};

use super::{Row, check, check_all};
use crate::{
    fake_server::{FakeServer, Piece, Reply},
    outcome::{config, describe, request, run},
    wires::{ALL, Said, Wire},
};

pub(super) const CASES: &[Row] = &[
    (1, "any chunking, any line ending, comments", ALL, |wire| chunking(wire).boxed()),
    (9, "a stream without its end", ALL, |wire| cut(wire).boxed()),
    (10, "a reason without the last event", ALL, |wire| no_last_event(wire).boxed()),
    (11, "reset and silence", ALL, |wire| reset_and_silence(wire).boxed()),
    (19, "HTML, broken JSON, nothing", ALL, |wire| nonsense(wire).boxed()),
    (20, "a redirect", ALL, |wire| redirect(wire).boxed()),
    (26, "unknown events, items, deltas", ALL, |wire| unknown(wire).boxed()),
    (27, "usage that is missing or partial", ALL, |wire| usage(wire).boxed()),
    (33, "missing event names, indexes, ids", ALL, |wire| missing_names(wire).boxed()),
];

async fn chunking(wire: Wire) {
    let said = Said::text(&["Grüße 🦀", "!"]);
    let text: String =
        said.events(wire).iter().map(|event| format!(": hello\n{}: ping\n", wire.event(event))).collect();
    let text = format!("\u{feff}{text}{}", wire.end_of_stream());
    for ending in ["\n", "\r\n", "\r"] {
        let reply = Reply::new(200, "text/event-stream; charset=utf-8", text.replace('\n', ending));
        check(wire, &reply, r#""Grüße 🦀!", Stop"#).await;
        check(wire, &reply.byte_by_byte(), r#""Grüße 🦀!", Stop"#).await;
    }
}

/// Everything up to the event that says why the answer ends.
fn without_reason(said: &Said, wire: Wire) -> Vec<Value> {
    let mut events = said.events(wire);
    events.pop();
    events
}

async fn cut(wire: Wire) {
    let call = Said::call("x", "create_plan", &["{}"]);
    let text = Said::text(&["Hi"]);
    check(wire, &Reply::new(200, "text/event-stream", ""), "retryable, 200").await;
    for said in [call, text] {
        let events = without_reason(&said, wire);
        check(wire, &wire.cut_stream(&events), "retryable, 200").await;
        let done = Reply::new(200, "text/event-stream", "data: [DONE]\n\n");
        check(wire, &done, "retryable, 200").await;
        let last = said.events(wire).pop().unwrap().to_string();
        let mut half = wire.cut_stream(&events);
        half.pieces.push(Piece::Bytes(format!("data: {}", &last[..last.len() / 2]).into()));
        check(wire, &half, "retryable, 200").await;
    }
}

async fn no_last_event(wire: Wire) {
    let events = Said::text(&["Hi"]).events(wire);
    let reply = wire.cut_stream(&events);
    check(wire, &reply, r#""Hi", Stop"#).await;
    check(wire, &reply.clone().then(Piece::Reset), r#""Hi", Stop"#).await;
    let Some(Piece::Bytes(bytes)) = reply.pieces.first() else { panic!("{reply:?}") };
    let unended = bytes.strip_suffix(b"\n\n").unwrap().to_vec();
    check(wire, &Reply::new(200, "text/event-stream", unended), r#""Hi", Stop"#).await;
}

async fn reset_and_silence(wire: Wire) {
    let events = without_reason(&Said::text(&["Hi"]), wire);
    check(wire, &wire.cut_stream(&events).then(Piece::Reset), "retryable, 200").await;
    check(wire, &Reply::json(200, "{\"id\":").then(Piece::Reset), "retryable, 200").await;
    let whole = wire.cut_stream(&Said::text(&["Hi"]).events(wire));
    for (reply, expected) in [
        (wire.cut_stream(&events).then(Piece::Stall), "retryable, 200"),
        (Reply::json(200, "{").then(Piece::Stall), "retryable, 200"),
        (whole.then(Piece::Stall), r#""Hi", Stop"#),
    ] {
        let server = FakeServer::start(reply).await;
        let config = EndpointConfig { timeout: Duration::from_millis(300), ..config(&server.base_url, true) };
        let outcome = run(&HttpProvider::new(wire.api(), config).unwrap(), request()).await;
        assert_eq!(describe(&outcome), expected, "{wire:?}");
    }
}

async fn nonsense(wire: Wire) {
    let html = "<html><body>502 <b>Bad</b> Gateway</body></html>";
    check(wire, &Reply::new(502, "text/html", html), "retryable, 502").await;
    check(wire, &Reply::new(404, "text/html", html), "InvalidRequest, 404").await;
    check(wire, &Reply::new(200, "text/html", html), "Unparseable, 200").await;
    for body in
        ["", "{\"choices\":[{", "null", "7", "[]", "{}", r#"{"choices":null}"#, r#"{"hello":"world"}"#]
    {
        check(wire, &Reply::json(200, body), "Unparseable, 200").await;
    }
    check(wire, &Reply::json(200, &"[".repeat(100_000)), "Unparseable, 200").await;
    let mut events = Said::text(&["Hi"]).events(wire);
    let last = events.pop().unwrap();
    let mut reply = wire.cut_stream(&events);
    reply.pieces.push(Piece::Bytes(format!("data: {{not json\n\n{}", wire.event(&last)).into()));
    check(wire, &reply, "Unparseable, 200").await;
}

async fn redirect(wire: Wire) {
    let elsewhere = FakeServer::start(Said::text(&["Hi"]).streamed(wire)).await;
    for status in [301, 302, 307, 308] {
        let reply = Reply::json(status, "{}").header("location", &format!("{}/x", elsewhere.base_url));
        check(wire, &reply, &format!("InvalidRequest, {status}")).await;
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

async fn unknown(wire: Wire) {
    let mut events = Said::text(&["Hi"]).events(wire);
    match wire {
        Wire::Chat => {
            events[0]["choices"][0]["delta"]["audio"] = json!({"a": 1});
            events[0]["obfuscation"] = "x".into();
        }
        Wire::Responses => {
            events.insert(
                1,
                json!({"type": "response.audio.delta", "delta": {"a": 1}, "item_id": 7.5_f64.to_string()}),
            );
            events.insert(
                1,
                json!({"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text"}}),
            );
            events.insert(1, json!({"type": "codex.rate_limits", "limits": [1, 2]}));
        }
        Wire::Messages => {
            events.insert(
                2,
                json!({"type": "content_block_delta", "index": 9, "delta": {"type": "odd_delta", "odd": 1}}),
            );
            events.insert(2, json!({"type": "message_note", "note": "x"}));
        }
    }
    check(wire, &wire.stream(&events), r#""Hi", Stop"#).await;
    let named = format!("event: vendor.extension\ndata: {{\"anything\":1}}\n\n{}", wire.event(&events[0]));
    let mut reply = Reply::new(200, "text/event-stream", named);
    let rest: String = events[1..].iter().map(|event| wire.event(event)).collect();
    reply.pieces.push(Piece::Bytes(rest.into()));
    check(wire, &reply, r#""Hi", Stop"#).await;
    // A stream that does not say that it is one.
    let text: String = events.iter().map(|event| wire.event(event)).collect();
    check(wire, &Reply::new(200, "application/json", text), r#""Hi", Stop"#).await;
    let mut whole = Said::text(&["Hi"]).whole(wire);
    match wire {
        Wire::Chat => whole["choices"][0]["message"]["annotations"] = json!([{"type": "odd"}]),
        Wire::Responses => {
            whole["output"].as_array_mut().unwrap().insert(0, json!({"type": "odd_call", "n": 1}))
        }
        Wire::Messages => {
            whole["content"].as_array_mut().unwrap().insert(0, json!({"type": "odd_block", "n": 1}))
        }
    }
    check(wire, &Reply::json(200, &whole.to_string()), r#""Hi", Stop"#).await;
    for said in Said::text(&["Hi"]).ending(crate::wires::End::Unknown).replies(wire) {
        check(wire, &said, r#""Hi", Other("paused")"#).await;
    }
}

async fn usage(wire: Wire) {
    let said = Said { usage: Some((34, 24, 6)), ..Said::text(&["Hi"]) };
    check_all(wire, &said.replies(wire), r#""Hi", Stop, in 34, cached 24, out 6"#).await;
    check_all(wire, &Said::text(&["Hi"]).replies(wire), r#""Hi", Stop"#).await;
    let partial: &[(Value, &str)] = match wire {
        Wire::Chat => &[
            (json!({"prompt_tokens": 7}), ", in 7"),
            (json!({"prompt_tokens": -1, "completion_tokens": "many"}), ""),
            (json!({"prompt_tokens": 7, "prompt_cache_hit_tokens": 5}), ", in 7, cached 5"),
        ],
        Wire::Responses => &[
            (json!({"input_tokens": 7}), ", in 7"),
            (json!({"input_tokens": -1, "output_tokens": "many"}), ""),
            (json!({"output_tokens": 0, "input_tokens_details": null}), ", out 0"),
        ],
        Wire::Messages => &[
            (json!({"input_tokens": 7}), ", in 7"),
            (json!({"input_tokens": -1, "output_tokens": "many"}), ""),
            (
                json!({"input_tokens": 7, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}),
                ", in 14, cached 5, wrote 2",
            ),
            (json!({"cache_read_input_tokens": 5, "output_tokens": 3}), ", cached 5, out 3"),
        ],
    };
    for (usage, expected) in partial {
        let mut whole = Said::text(&["Hi"]).whole(wire);
        whole["usage"] = usage.clone();
        check(wire, &Reply::json(200, &whole.to_string()), &format!(r#""Hi", Stop{expected}"#)).await;
    }
}

/// Two messages in one answer are two paragraphs, streamed and whole.
async fn two_messages() {
    let item = |id: &str, text: &str| json!({"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let delta =
        |id: &str, text: &str| json!({"type": "response.output_text.delta", "item_id": id, "delta": text});
    let done = |id: &str, text: &str| json!({"type": "response.output_item.done", "item": item(id, text)});
    let added = |id: &str| json!({"type": "response.output_item.added", "item": item(id, "")});
    let response = json!({"status": "completed", "output": [item("a", "One."), item("b", "Two.")]});
    let mut events = vec![added("a"), delta("a", "One"), delta("a", "."), done("a", "One.")];
    events.extend([added("b"), delta("b", "Two."), done("b", "Two.")]);
    events.push(json!({"type": "response.completed", "response": response}));
    check(Wire::Responses, &Wire::Responses.stream(&events), r#""One.\n\nTwo.", Stop"#).await;
    check(Wire::Responses, &Reply::json(200, &response.to_string()), r#""One.\n\nTwo.", Stop"#).await;
    // Nothing streamed but the items: the text comes at the end.
    events.retain(|event| event["type"] != "response.output_text.delta");
    check(Wire::Responses, &Wire::Responses.stream(&events), r#""One.\n\nTwo.", Stop"#).await;
}

async fn missing_names(wire: Wire) {
    if wire == Wire::Responses {
        two_messages().await;
    }
    let said = Said { text: vec!["Hi"], ..Said::call("x", "create_plan", &["{", "}"]) };
    let mut events = said.events(wire);
    for event in &mut events {
        let fields = event.as_object_mut().unwrap();
        fields.retain(|key, _| !matches!(key.as_str(), "id" | "output_index" | "item_id" | "content_index"));
        if wire == Wire::Messages {
            fields.remove("index");
        }
        for (_, part) in fields.iter_mut().filter(|(key, _)| matches!(key.as_str(), "response" | "message")) {
            part.as_object_mut().unwrap().retain(|key, _| !matches!(key.as_str(), "id" | "object" | "type"));
        }
    }
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::new(200, "text/event-stream", text);
    check(wire, &reply, r#""Hi", x create_plan {}, ToolCalls"#).await;
    let mut whole = Said::text(&["Hi"]).whole(wire);
    whole
        .as_object_mut()
        .unwrap()
        .retain(|key, _| !matches!(key.as_str(), "id" | "object" | "type" | "usage"));
    check(wire, &Reply::json(200, &whole.to_string()), r#""Hi", Stop"#).await;
}
