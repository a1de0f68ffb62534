//! How errors are told.

use futures::FutureExt;
use serde_json::{Value, json};

use super::{Row, check, check_all};
use crate::{
    fake_server::{Piece, Reply},
    wires::{ALL, Said, Wire},
};

pub(super) const CASES: &[Row] = &[
    (12, "when to come back", ALL, |wire| come_back(wire).boxed()),
    (13, "429 without quota", ALL, |wire| quota(wire).boxed()),
    (14, "529, and overload inside a stream", ALL, |wire| overload(wire).boxed()),
    (15, "an error in a success", ALL, |wire| error_in_success(wire).boxed()),
    (16, "`response.failed` and `error` events", ALL, |wire| failed_events(wire).boxed()),
    (17, "a context overflow in any wording", ALL, |wire| overflow(wire).boxed()),
    (18, "500 for output that the server cannot read", ALL, |wire| unreadable(wire).boxed()),
];

/// A stream that begins well and then brings this.
fn broken_off(wire: Wire, event: &str) -> Reply {
    let mut events = Said::text(&["Hi"]).events(wire);
    events.pop();
    let mut reply = wire.cut_stream(&events);
    reply.pieces.push(Piece::Bytes(event.into()));
    reply
}

async fn come_back(wire: Wire) {
    let limited = |name, value: &str| Reply::json(429, "{}").header(name, value);
    check(wire, &limited("retry-after", "7"), "retryable after 7s, 429").await;
    check(wire, &limited("retry-after", "1.5"), "retryable after 1.5s, 429").await;
    check(wire, &limited("retry-after-ms", "250"), "retryable after 250ms, 429").await;
    let dated = limited("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")
        .header("date", "Wed, 21 Oct 2026 07:28:00 GMT");
    check(wire, &dated, "retryable after 30s, 429").await;
    let body = r#"[{"error":{"code":503,"details":[{"retryDelay":"34s"}]}}]"#;
    check(wire, &Reply::json(503, body), "retryable after 34s, 503").await;
    check(wire, &Reply::json(503, "{}").header("request-id", "req-7"), "retryable, 503 req-7").await;
}

async fn quota(wire: Wire) {
    for code in ["insufficient_quota", "billing_error"] {
        let body = json!({"type": "error", "error": {"type": code, "message": "m"}}).to_string();
        check(wire, &Reply::json(429, &body), "Quota, 429").await;
    }
    check(wire, &Reply::json(402, "{}"), "Quota, 402").await;
    for status in [401, 403] {
        check(wire, &Reply::json(status, "{}"), &format!("Auth, {status}")).await;
    }
}

async fn overload(wire: Wire) {
    let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    check(wire, &Reply::json(529, &body.to_string()), "retryable, 529").await;
    check(wire, &broken_off(wire, &format!("event: error\ndata: {body}\n\n")), "retryable, 200").await;
    check(wire, &broken_off(wire, &format!("data: {body}\n\n")), "retryable, 200").await;
}

async fn error_in_success(wire: Wire) {
    for (body, expected) in [
        (r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, "retryable, 200"),
        (r#"{"error":{"code":401,"message":"no"}}"#, "Auth, 200"),
        (r#"{"error":{"code":"insufficient_quota"}}"#, "Quota, 200"),
        (r#"{"error":{"code":502,"message":"upstream"},"choices":null}"#, "retryable, 200"),
    ] {
        check(wire, &Reply::json(200, body), expected).await;
        check(wire, &broken_off(wire, &format!("data: {body}\n\n")), expected).await;
    }
    if wire == Wire::Chat {
        let body = r#"{"choices":[{"index":0,"finish_reason":"error","delta":{}}]}"#;
        check(wire, &Reply::json(200, body), "retryable, 200").await;
        check(wire, &broken_off(wire, &format!("data: {body}\n\n")), "retryable, 200").await;
    }
}

async fn failed_events(wire: Wire) {
    let error = |code: &str| json!({"type": "error", "code": code, "message": "m", "param": null});
    for (code, expected) in [
        ("rate_limit_exceeded", "retryable, 200"),
        ("server_error", "retryable, 200"),
        ("insufficient_quota", "Quota, 200"),
        ("context_length_exceeded", "ContextOverflow, 200"),
        ("invalid_api_key", "Auth, 200"),
    ] {
        check(wire, &broken_off(wire, &format!("event: error\ndata: {}\n\n", error(code))), expected).await;
        if wire == Wire::Responses {
            let response = json!({"id": "r", "status": "failed", "output": [], "error": error(code)});
            let event = json!({"type": "response.failed", "response": response});
            check(wire, &broken_off(wire, &wire.event(&event)), expected).await;
            check(wire, &Reply::json(200, &response.to_string()), expected).await;
            check(wire, &broken_off(wire, &format!("data: {}\n\n", error(code))), expected).await;
        }
    }
    if wire == Wire::Responses {
        for status in ["failed", "cancelled", "in_progress"] {
            let response = json!({"id": "r", "status": status, "output": []});
            check(wire, &Reply::json(200, &response.to_string()), "retryable, 200").await;
        }
        let bare = json!({"type": "response.failed", "response": {"id": "r"}});
        check(wire, &broken_off(wire, &wire.event(&bare)), "retryable, 200").await;
    }
}

async fn overflow(wire: Wire) {
    for body in [
        r#"{"error":{"code":"context_length_exceeded","message":"m","type":"invalid_request_error"}}"#,
        r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (6031 tokens) exceeds"}}"#,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#,
        r#"{"error":"prompt is too long: 212000 tokens > 200000 maximum"}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
    ] {
        check(wire, &Reply::json(400, body), "ContextOverflow, 400").await;
        check(wire, &Reply::json(200, body), "ContextOverflow, 200").await;
        check(wire, &broken_off(wire, &format!("data: {body}\n\n")), "ContextOverflow, 200").await;
    }
    check(wire, &Reply::json(400, r#"{"error":"temperature is too long"}"#), "InvalidRequest, 400").await;
}

async fn unreadable(wire: Wire) {
    let body = r#"{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}"#;
    check_all(wire, &[Reply::json(500, body), Reply::json(500, body).byte_by_byte()], "Unparseable, 500")
        .await;
    let other: Value = json!({"error": {"code": 500, "message": "m", "type": "server_error"}});
    check(wire, &Reply::json(500, &other.to_string()), "retryable, 500").await;
}
