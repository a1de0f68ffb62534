//! What servers do that no reference mentions: each case streamed and whole, with the one result it must have.

use std::time::Duration;

use harness_providers::{ChatCompletionsConfig, ChatCompletionsProvider};

use crate::{
    fake_server::{FakeServer, Piece, Reply},
    outcome::{config, describe, provider, request, run},
};

const DONE: &str = "[DONE]";
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLED: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
const HI: &str =
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}"#;

/// What the provider makes of a reply, whichever form it asked for.
#[track_caller]
fn check(reply: &Reply, expected: &str) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        for stream in [true, false] {
            let server = FakeServer::start(reply.clone()).await;
            let outcome = run(&provider(&server.base_url, stream), request()).await;
            assert_eq!(describe(&outcome), expected, "at {caller}, asked for stream: {stream}\n{outcome:?}");
            assert_eq!(server.requests().len(), 1, "nothing is retried inside");
        }
    }
}

/// A piece with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

/// A whole answer with this message and reason.
fn whole(message: &str, reason: &str) -> Reply {
    Reply::json(
        200,
        &format!(
            r#"{{"id":"c-1","choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}]}}"#
        ),
    )
}

#[tokio::test]
async fn any_chunking_gives_the_same_answer() {
    let body = format!(
        ": hello\r\n\r\ndata: {}\r\n\r\n: ping\r\ndata: {}\r\n\r\nevent: message\r\ndata: {STOP}\r\n\r\ndata: {DONE}\r\n\r\n",
        delta(r#"{"content":"Grüße 🦀"}"#),
        delta(r#"{"content":"!"}"#),
    );
    for text in [body.clone(), body.replace("\r\n", "\n"), body.replace("\r\n", "\r")] {
        let reply = Reply::new(200, "text/event-stream; charset=utf-8", text);
        check(&reply, r#""Grüße 🦀!", Stop"#).await;
        check(&reply.byte_by_byte(), r#""Grüße 🦀!", Stop"#).await;
    }
}

#[tokio::test]
async fn tool_calls_are_assembled() {
    let a = delta(
        r#"{"tool_calls":[{"index":1,"id":"y","function":{"name":"create_plan","arguments":""}},{"index":0,"id":"x","type":"function","function":{"name":"shop_orders_get_order","arguments":"{\"n\":"}}]}"#,
    );
    let b = delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":" 1.10}"}}]}"#);
    let expected = r#"x shop/orders.get_order {"n": 1.10}, y create_plan {}, ToolCalls"#;
    check(&Reply::events(&[&a, &b, CALLED, DONE]), expected).await;
    // Calls count, whatever the reason says.
    check(&Reply::events(&[&a, &b, STOP, DONE]), expected).await;
    let message = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"shop_orders_get_order","arguments":"{\"n\": 1.10}"}},{"id":"y","type":"function","function":{"name":"create_plan"}}]}"#;
    check(&whole(message, "tool_calls"), expected).await;
    check(&whole(message, "stop"), expected).await;
}

#[tokio::test]
async fn odd_tool_calls_are_kept_as_they_are() {
    let calls = r#"[{"function":{"name":"no_such_tool","arguments":"{not json"}},{"function":{"name":"create_plan","arguments":{"n":12345678901234567890123}}}]"#;
    let expected =
        r#"call_0 no_such_tool {not json, call_1 create_plan {"n":12345678901234567890123}, ToolCalls"#;
    check(&whole(&format!(r#"{{"content":"","tool_calls":{calls}}}"#), "stop"), expected).await;
    let first = delta(
        r#"{"tool_calls":[{"index":4000000000,"function":{"name":"no_such_tool","arguments":"{not json"}}]}"#,
    );
    let second = delta(
        r#"{"tool_calls":[{"index":4000000009,"function":{"name":"create_plan","arguments":{"n":12345678901234567890123}}}]}"#,
    );
    check(&Reply::events(&[&first, &second, STOP]), expected).await;
}

#[tokio::test]
async fn a_cut_stream_is_an_error_and_calls_nothing() {
    let call =
        delta(r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"create_plan","arguments":"{}"}}]}"#);
    check(&Reply::events(&[HI, &call]), "retryable, 200").await;
    check(&Reply::events(&[&call, DONE]), "retryable, 200").await;
    check(&Reply::new(200, "text/event-stream", ""), "retryable, 200").await;
    check(&Reply::new(200, "text/event-stream", format!("data: {HI}\n\ndata: {{\"choi")), "retryable, 200")
        .await;
    check(&Reply::events(&[HI]).then(Piece::Reset), "retryable, 200").await;
    check(&Reply::json(200, r#"{"choices":[{"mess"#).then(Piece::Reset), "retryable, 200").await;
}

#[tokio::test]
async fn a_finished_answer_needs_nothing_more() {
    check(&Reply::events(&[HI, STOP]), r#""Hi", Stop"#).await;
    check(&Reply::new(200, "text/event-stream", format!("data: {HI}\n\ndata: {STOP}")), r#""Hi", Stop"#)
        .await;
    check(&Reply::events(&[HI, STOP]).then(Piece::Reset), r#""Hi", Stop"#).await;
}

#[tokio::test]
async fn silence_ends_after_the_time_out() {
    for (reply, expected) in [
        (Reply::events(&[HI]).then(Piece::Stall), "retryable, 200"),
        (Reply::json(200, "{").then(Piece::Stall), "retryable, 200"),
        (Reply::events(&[HI, STOP]).then(Piece::Stall), r#""Hi", Stop"#),
    ] {
        let server = FakeServer::start(reply).await;
        let config =
            ChatCompletionsConfig { timeout: Duration::from_millis(300), ..config(&server.base_url, true) };
        let outcome = run(&ChatCompletionsProvider::new(config).unwrap(), request()).await;
        assert_eq!(describe(&outcome), expected);
    }
}

#[tokio::test]
async fn errors_have_a_class() {
    let busy =
        |status| Reply::json(status, r#"{"error":{"message":"busy"}}"#).header("x-request-id", "req-1");
    for status in [408, 429, 500, 502, 503, 504, 529] {
        check(&busy(status), &format!("retryable, {status} req-1")).await;
    }
    for (status, class) in [
        (400, "InvalidRequest"),
        (404, "InvalidRequest"),
        (422, "InvalidRequest"),
        (401, "Auth"),
        (403, "Auth"),
        (402, "Quota"),
        (413, "ContextOverflow"),
    ] {
        check(&busy(status), &format!("{class}, {status} req-1")).await;
    }
    let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    check(&Reply::json(429, quota), "Quota, 429").await;
}

#[tokio::test]
async fn the_provider_says_when_to_come_back() {
    let limited = |name, value: &str| Reply::json(429, "{}").header(name, value);
    check(&limited("retry-after", "7"), "retryable after 7s, 429").await;
    check(&limited("retry-after", "1.5"), "retryable after 1.5s, 429").await;
    check(&limited("retry-after-ms", "250"), "retryable after 250ms, 429").await;
    let dated = limited("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")
        .header("date", "Wed, 21 Oct 2026 07:28:00 GMT");
    check(&dated, "retryable after 30s, 429").await;
    let body = r#"[{"error":{"code":503,"details":[{"@type":"RetryInfo","retryDelay":"34s"}]}}]"#;
    check(&Reply::json(503, body), "retryable after 34s, 503").await;
}

#[tokio::test]
async fn an_overflow_is_known_in_any_wording() {
    for body in [
        r#"{"error":{"code":"context_length_exceeded","message":"m","type":"invalid_request_error"}}"#,
        r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (6031 tokens) exceeds"}}"#,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#,
        r#"{"error":"prompt is too long: 212000 tokens > 200000 maximum"}"#,
        r#"{"error":{"message":"The input is too long for the requested model"}}"#,
    ] {
        check(&Reply::json(400, body), "ContextOverflow, 400").await;
        check(&Reply::json(200, body), "ContextOverflow, 200").await;
        check(&Reply::events(&[HI, body]), "ContextOverflow, 200").await;
    }
    check(&Reply::json(400, r#"{"error":"temperature is too long"}"#), "InvalidRequest, 400").await;
}

#[tokio::test]
async fn errors_inside_a_success_go_by_their_code() {
    for (body, expected) in [
        (r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, "retryable, 200"),
        (r#"{"error":{"code":401,"message":"no"}}"#, "Auth, 200"),
        (r#"{"error":{"code":"insufficient_quota"}}"#, "Quota, 200"),
        (r#"{"error":{"code":502,"message":"upstream"},"choices":null}"#, "retryable, 200"),
        (
            r#"{"choices":[{"index":0,"finish_reason":"error","error":{"code":429},"delta":{"content":""}}]}"#,
            "retryable, 200",
        ),
        (r#"{"choices":[{"index":0,"finish_reason":"error","delta":{}}]}"#, "retryable, 200"),
    ] {
        check(&Reply::json(200, body), expected).await;
        check(&Reply::events(&[HI, body, DONE]), expected).await;
    }
    let named = "event: error\ndata: {\"type\":\"rate_limit_error\",\"message\":\"slow down\"}\n\n";
    check(&Reply::new(200, "text/event-stream", format!("data: {HI}\n\n{named}")), "retryable, 200").await;
}

#[tokio::test]
async fn nonsense_is_a_typed_error() {
    let html = "<html><body>502 <b>Bad</b> Gateway</body></html>";
    check(&Reply::new(502, "text/html", html), "retryable, 502").await;
    check(&Reply::new(404, "text/html", html), "InvalidRequest, 404").await;
    check(&Reply::new(200, "text/html", html), "Unparseable, 200").await;
    check(&Reply::json(200, ""), "Unparseable, 200").await;
    check(&Reply::json(200, r#"{"choices":[{"#), "Unparseable, 200").await;
    check(&Reply::json(200, r#"{"choices":null}"#), "Unparseable, 200").await;
    check(&Reply::json(200, r#"{"choices":[]}"#), "Unparseable, 200").await;
    check(&Reply::json(200, r#"{"choices":[{"finish_reason":"stop"}]}"#), "Unparseable, 200").await;
    check(&whole(r#"{"content":7}"#, "stop"), "Unparseable, 200").await;
    check(&Reply::json(200, &"[".repeat(100_000)), "Unparseable, 200").await;
    check(&Reply::events(&[HI, "{not json", STOP, DONE]), "Unparseable, 200").await;
    let unreadable = r#"{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}"#;
    check(&Reply::json(500, unreadable), "Unparseable, 500").await;
}

#[tokio::test]
async fn a_refusal_is_a_refusal() {
    let no = [delta(r#"{"refusal":"I cannot "}"#), delta(r#"{"refusal":"do that."}"#)];
    check(&Reply::events(&[&no[0], &no[1], STOP, DONE]), r#"refusal "I cannot do that.", Refusal"#).await;
    check(
        &whole(r#"{"content":null,"refusal":"I cannot do that."}"#, "stop"),
        r#"refusal "I cannot do that.", Refusal"#,
    )
    .await;
    let filtered = r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#;
    let expected = r#""Hi", refusal "The provider's content filter stopped the answer.", Refusal"#;
    check(&Reply::events(&[HI, filtered, DONE]), expected).await;
    check(&whole(r#"{"content":"Hi"}"#, "content_filter"), expected).await;
}

#[tokio::test]
async fn reasons_are_understood_or_kept() {
    for (reason, finish) in
        [("stop", "Stop"), ("length", "Length"), ("max_tokens", "Length"), ("paused", r#"Other("paused")"#)]
    {
        let expected = format!(r#""Hi", {finish}"#);
        check(&whole(r#"{"content":"Hi"}"#, reason), &expected).await;
        let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        check(&Reply::events(&[HI, &last, DONE]), &expected).await;
    }
    // The cap was 1,000: an answer of 1,000 tokens was cut off, whatever the server calls it.
    let usage = r#"{"choices":[],"usage":{"completion_tokens":1000}}"#;
    check(&Reply::events(&[HI, STOP, usage, DONE]), r#""Hi", Length, out 1000"#).await;
    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1000}}"#;
    check(&Reply::json(200, body), r#""Hi", Length, out 1000"#).await;
}

#[tokio::test]
async fn nothing_is_not_an_answer() {
    for delta_fields in [r#"{"content":""}"#, r#"{"content":" \n"}"#, r#"{"reasoning_content":"Hm."}"#, "{}"]
    {
        check(&whole(delta_fields, "stop"), "Empty, 200").await;
        check(&whole(delta_fields, "tool_calls"), "Empty, 200").await;
        check(&Reply::events(&[&delta(delta_fields), STOP, DONE]), "Empty, 200").await;
        check(&Reply::events(&[&delta(delta_fields), CALLED, DONE]), "Empty, 200").await;
    }
    // Cut off before the first word is something else: more room helps.
    check(&whole(r#"{"content":"","reasoning_content":"Hm"}"#, "length"), "Length").await;
}

#[tokio::test]
async fn what_is_unknown_does_not_disturb() {
    let odd = r#"{"id":null,"created":"today","obfuscation":"x","choices":[{"delta":{"content":"Hi","audio":null,"role":7},"logprobs":{}}],"usage":null}"#;
    let event = format!(
        "event: vendor.extension\ndata: {{\"anything\":1}}\n\nevent:\ndata: {odd}\n\ndata: {STOP}\n\n"
    );
    check(&Reply::new(200, "text/event-stream", event), r#""Hi", Stop"#).await;
    check(&whole(r#"{"content":[{"type":"text","text":"H"},{"type":"thinking"},{"type":"text","text":"i"}],"audio":{}}"#, "stop"), r#""Hi", Stop"#).await;
    // A stream that does not say that it is one.
    check(&Reply::new(200, "application/json", format!("data: {HI}\n\ndata: {STOP}\n\n")), r#""Hi", Stop"#)
        .await;
}

#[tokio::test]
async fn unknown_usage_is_not_zero() {
    for (usage, expected) in [
        ("null", ""),
        ("{}", ""),
        (r#"{"prompt_tokens":7}"#, ", in 7"),
        (r#"{"prompt_tokens":-1,"completion_tokens":"many"}"#, ""),
        (
            r#"{"prompt_tokens":7,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":2}}"#,
            ", in 7, cached 3, wrote 2, out 0",
        ),
        (
            r#"{"prompt_tokens":7,"prompt_cache_hit_tokens":5,"prompt_tokens_details":null}"#,
            ", in 7, cached 5",
        ),
    ] {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"Hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        check(&Reply::json(200, &body), &format!(r#""Hi", Stop{expected}"#)).await;
        let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        check(&Reply::events(&[HI, STOP, &last, DONE]), &format!(r#""Hi", Stop{expected}"#)).await;
    }
}

#[tokio::test]
async fn a_redirect_is_refused_and_nothing_is_sent_elsewhere() {
    let elsewhere = FakeServer::start(Reply::events(&[HI, STOP])).await;
    for status in [301, 302, 307, 308] {
        let target = format!("{}/chat/completions", elsewhere.base_url);
        check(&Reply::json(status, "{}").header("location", &target), &format!("InvalidRequest, {status}"))
            .await;
    }
    assert_eq!(elsewhere.requests().len(), 0);
}
