//! Answers of a real llama.cpp server, recorded, against what they mean.

use harness_model::Finish;
use harness_ports::ModelRequest;

use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{describe, provider, provider_on, request, run},
    wires::Wire,
};

/// The recorded response as a reply: status, content type and body; transfer coding is the server's business.
pub(crate) fn recorded(capture: &str) -> Reply {
    let capture = capture.replace("\r\n", "\n");
    let (head, body) = capture.split_once("\n\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let content_type = head.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap();
    Reply::new(status, content_type, body)
}

async fn check(capture: &str, deltas_expected: &[&str], expected: &str) {
    check_on(Wire::Chat, capture, deltas_expected, expected).await;
}

async fn check_on(wire: Wire, capture: &str, deltas_expected: &[&str], expected: &str) {
    for reply in [recorded(capture), recorded(capture).byte_by_byte()] {
        let server = FakeServer::start(reply).await;
        let outcome = run(&provider_on(wire, &server.base_url, true), request()).await;
        assert_eq!(describe(&outcome), expected, "{outcome:?}");
        if let Ok((deltas, output)) = outcome {
            assert_eq!(deltas, deltas_expected);
            assert_eq!(output.model, "models/SmolLM2-135M-Instruct.Q4_1.gguf");
            let id = output.request_id.unwrap();
            assert!(id.starts_with("chatcmpl-") || id.starts_with("resp_"), "{id}");
            assert!(output.raw_items.is_empty());
        }
    }
}

#[tokio::test]
async fn text_cut_by_length() {
    let deltas = ["Once", " upon", " a", " time", ",", " in"];
    let expected = r#""Once upon a time, in", Length"#;
    check(include_str!("captures/llamacpp-chat-length-stream_true.http"), &deltas, expected).await;
    let whole = include_str!("captures/llamacpp-chat-length-stream_false.http");
    check(whole, &["Once upon a time, in"], &format!("{expected}, in 34, cached 24, out 6")).await;
}

#[tokio::test]
async fn text_that_matches_a_schema() {
    let text = "{\n  \"name\": \"Ann\",\n  \"age\": 31\n}";
    let whole = include_str!("captures/llamacpp-chat-schema-stream_false.http");
    check(whole, &[text], &format!("{text:?}, Stop, in 41, cached 24, out 18")).await;
    let streamed = include_str!("captures/llamacpp-chat-schema-stream_true.http");
    let server = FakeServer::start(recorded(streamed)).await;
    let (deltas, output) = run(&provider(&server.base_url, true), request()).await.unwrap();
    assert_eq!(output.text, text);
    assert_eq!(deltas.len(), 17);
}

#[tokio::test]
async fn a_tool_call() {
    let streamed = include_str!("captures/llamacpp-chat-tool-stream_true.http");
    let expected = r#"hJiVNyqmt4nsBd2Ui87DCE5SDQkhfBwG get_weather {"city": "Paris"}, ToolCalls, in 194, cached 165, out 11"#;
    check(streamed, &[], expected).await;
    let whole = include_str!("captures/llamacpp-chat-tool-stream_false.http");
    let expected = r#"4sP8ZzZcVk8b8KRV7EkgJF6SVvlr2dEu get_weather {"city": "Paris"}, ToolCalls, in 194, cached 193, out 11"#;
    check(whole, &[], expected).await;
}

#[tokio::test]
async fn errors() {
    check(include_str!("captures/llamacpp-ctx-overflow.http"), &[], "ContextOverflow, 400").await;
    check(include_str!("captures/llamacpp-500-parse.http"), &[], "Unparseable, 500").await;
}

const WORDS: [&str; 6] = ["Once", " upon", " a", " time", ",", " in"];

#[tokio::test]
async fn responses_text() {
    // This server calls an answer complete that its cap cut off.
    let expected = r#""Once upon a time, in", Stop, in 34, cached 33, out 6"#;
    let streamed = include_str!("captures/llamacpp-responses-length-stream_true.http");
    check_on(Wire::Responses, streamed, &WORDS, expected).await;
    let whole = include_str!("captures/llamacpp-responses-length-stream_false.http");
    check_on(Wire::Responses, whole, &["Once upon a time, in"], expected).await;
    for capture in [streamed, whole] {
        let server = FakeServer::start(recorded(capture)).await;
        let capped = ModelRequest { max_output_tokens: 6, ..request() };
        let (_, output) = run(&provider_on(Wire::Responses, &server.base_url, true), capped).await.unwrap();
        assert_eq!(output.finish, Finish::Length);
    }
}

#[tokio::test]
async fn responses_tool_call() {
    let streamed = include_str!("captures/llamacpp-responses-tool-stream_true.http");
    let expected = r#"call_3e2ck33WYPBYQzPaTZKImIcCGS5OBIi0 get_weather {"city": "Paris"}, ToolCalls, in 190, cached 26, out 11"#;
    check_on(Wire::Responses, streamed, &[], expected).await;
    let whole = include_str!("captures/llamacpp-responses-tool-stream_false.http");
    let expected = r#"call_EVsFiIHTCn6IZpz43NC4dGig3lMmLhBq get_weather {"city": "Paris"}, ToolCalls, in 190, cached 189, out 11"#;
    check_on(Wire::Responses, whole, &[], expected).await;
}

#[tokio::test]
async fn messages_text() {
    let expected = r#""Once upon a time, in", Length, in 34, cached 33, out 6"#;
    let streamed = include_str!("captures/llamacpp-messages-length-stream_true.http");
    check_on(Wire::Messages, streamed, &WORDS, expected).await;
    let whole = include_str!("captures/llamacpp-messages-length-stream_false.http");
    check_on(Wire::Messages, whole, &["Once upon a time, in"], expected).await;
}

#[tokio::test]
async fn messages_tool_call() {
    let streamed = include_str!("captures/llamacpp-messages-tool-stream_true.http");
    let expected = r#"XKaWIhphigiuBhCcqbzl8PbG3NYv9oXa get_weather {"city": "Paris"}, ToolCalls, in 185, cached 55, out 11"#;
    check_on(Wire::Messages, streamed, &[], expected).await;
    let whole = include_str!("captures/llamacpp-messages-tool-stream_false.http");
    let expected = r#"7sfpa4FBoSJpREDKbbwkCaVbWCB1kQGb get_weather {"city":"Paris"}, ToolCalls, in 185, cached 184, out 11"#;
    check_on(Wire::Messages, whole, &[], expected).await;
}

#[tokio::test]
async fn errors_on_the_other_wires() {
    let overflow = include_str!("captures/llamacpp-messages-ctx-overflow.http");
    check_on(Wire::Messages, overflow, &[], "ContextOverflow, 400").await;
    let overflow = include_str!("captures/llamacpp-ctx-overflow.http");
    check_on(Wire::Responses, overflow, &[], "ContextOverflow, 400").await;
    let unreadable = include_str!("captures/llamacpp-500-parse.http");
    check_on(Wire::Responses, unreadable, &[], "Unparseable, 500").await;
    check_on(Wire::Messages, unreadable, &[], "Unparseable, 500").await;
}
