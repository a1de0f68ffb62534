//! Answers of a real llama.cpp server, recorded, against what they mean.

use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{describe, provider, request, run},
};

/// The recorded response as a reply: status, content type and body; transfer coding is the server's business.
fn recorded(capture: &str) -> Reply {
    let capture = capture.replace("\r\n", "\n");
    let (head, body) = capture.split_once("\n\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let content_type = head.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap();
    Reply::new(status, content_type, body)
}

async fn check(capture: &str, deltas_expected: &[&str], expected: &str) {
    for reply in [recorded(capture), recorded(capture).byte_by_byte()] {
        let server = FakeServer::start(reply).await;
        let outcome = run(&provider(&server.base_url, true), request()).await;
        assert_eq!(describe(&outcome), expected, "{outcome:?}");
        if let Ok((deltas, output)) = outcome {
            assert_eq!(deltas, deltas_expected);
            assert_eq!(output.model, "models/SmolLM2-135M-Instruct.Q4_1.gguf");
            assert!(output.request_id.unwrap().starts_with("chatcmpl-"));
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
