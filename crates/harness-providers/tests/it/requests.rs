//! What is sent: the conversation in the wire's terms, and what never leaves.

use std::sync::Arc;

use harness_model::{BlockRef, ItemPart};
use harness_ports::{InputItem, ModelErrorKind, ModelRequest};
use harness_providers::{ChatCompletionsConfig, ChatCompletionsProvider};
use serde_json::{Value, json};

use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{answer, config, provider, request, result, run, tool, user},
};

const ANSWER: &str = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;

/// The body that a request becomes.
async fn sent(request: ModelRequest) -> Value {
    let server = FakeServer::start(Reply::json(200, ANSWER)).await;
    run(&provider(&server.base_url, false), request).await.unwrap();
    server.requests().remove(0)
}

/// What a request that may not be sent is answered with.
async fn refused(request: ModelRequest) -> String {
    let server = FakeServer::start(Reply::json(200, ANSWER)).await;
    let error = run(&provider(&server.base_url, false), request).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert_eq!(server.requests().len(), 0);
    error.message
}

#[tokio::test]
async fn a_whole_request() {
    let body = sent(ModelRequest {
        model: Some("other-model".to_owned()),
        reasoning_effort: Some("low".to_owned()),
        response_format: Some(json!({"type": "object"})),
        ..request()
    })
    .await;
    let schema = tool("x").input_schema;
    assert_eq!(
        body,
        json!({
            "model": "other-model",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
            ],
            "tools": [
                {"type": "function", "function": {
                    "name": "create_plan",
                    "description": "Does create_plan.",
                    "parameters": schema,
                    "strict": false,
                }},
                {"type": "function", "function": {
                    "name": "shop_orders_get_order",
                    "description": "Does shop/orders.get_order. (registry name: shop/orders.get_order)",
                    "parameters": schema,
                    "strict": false,
                }},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "response", "schema": {"type": "object"}, "strict": true},
            },
            "max_tokens": 1000,
            "reasoning_effort": "low",
            "stream": false,
        })
    );
}

#[tokio::test]
async fn a_streamed_request_asks_for_usage_and_keeps_to_the_cap() {
    let server = FakeServer::start(Reply::json(200, ANSWER)).await;
    let request = ModelRequest { tools: Arc::default(), max_output_tokens: 50_000, ..request() };
    run(&provider(&server.base_url, true), request).await.unwrap();
    let body = server.requests().remove(0);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["max_tokens"], 2_000);
    assert_eq!(body.get("tools"), None);
}

#[tokio::test]
async fn calls_and_results_keep_their_exact_text() {
    let arguments = "{ \"order_id\": \"48213\", \"amount\": 1.10, \"n\": 12345678901234567890123 }";
    let calls = [("c1", "shop/orders.get_order", arguments), ("c2", "gone/tool.x", "not json")];
    let input = vec![
        user("Hello"),
        InputItem::Model(answer("", &calls)),
        result("c2", "gone/tool.x", "no such tool"),
        result("c1", "shop/orders.get_order", "{\"id\":\"48213\"}"),
        InputItem::Model(answer("Done.", &[])),
        user("Thanks"),
    ];
    let body = sent(ModelRequest { input, ..request() }).await;
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "shop_orders_get_order", "arguments": arguments}},
                {"id": "c2", "type": "function", "function": {"name": "gone_tool_x", "arguments": "{\"value\":\"not json\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c2", "content": "no such tool"},
            {"role": "tool", "tool_call_id": "c1", "content": "{\"id\":\"48213\"}"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "Thanks"},
        ])
    );
}

#[tokio::test]
async fn parts_become_text() {
    let parts = vec![
        ItemPart::Text("See:".to_owned()),
        ItemPart::Data(json!({"b": 1, "a": {"d": 2, "c": 3}})),
        ItemPart::Binary { media_type: "image/png".to_owned(), block: BlockRef::to(b"123") },
        ItemPart::Link { uri: "https://example.com/a".to_owned(), media_type: Some("text/html".to_owned()) },
        ItemPart::Link { uri: "https://example.com/b".to_owned(), media_type: None },
    ];
    let body = sent(ModelRequest { input: vec![InputItem::User { parts }], ..request() }).await;
    let expected = "See:\n{\"a\":{\"c\":3,\"d\":2},\"b\":1}\n[image/png, 3 bytes, not shown]\n\
        [https://example.com/a (text/html)]\n[https://example.com/b]";
    assert_eq!(body["messages"][1]["content"], expected);
}

#[tokio::test]
async fn the_providers_own_fields_go_back_as_they_came() {
    let pieces = [
        r#"{"choices":[{"delta":{"reasoning_content":"First ","reasoning_details":[{"type":"text","text":"a"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"this.","reasoning_details":[{"type":"sealed","data":"b="}],"annotations":[]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"create_plan","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s=="}}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    ];
    let whole = r#"{"choices":[{"message":{"content":null,"reasoning_content":"First this.","reasoning_details":[{"type":"text","text":"a"},{"type":"sealed","data":"b="}],"annotations":[],"tool_calls":[{"id":"c1","function":{"name":"create_plan","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s=="}}}]},"finish_reason":"tool_calls"}]}"#;
    for reply in [Reply::events(&pieces), Reply::json(200, whole)] {
        let server = FakeServer::start(reply).await;
        let (_, output) = run(&provider(&server.base_url, true), request()).await.unwrap();
        let next = |output| vec![user("Hello"), InputItem::Model(output), result("c1", "create_plan", "ok")];
        let body = sent(ModelRequest { input: next(output.clone()), ..request() }).await;
        assert_eq!(
            body["messages"][2],
            json!({
                "role": "assistant",
                "content": null,
                "tool_calls": [{
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "create_plan", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": "s=="}},
                }],
                "reasoning_content": "First this.",
                "reasoning_details": [{"type": "text", "text": "a"}, {"type": "sealed", "data": "b="}],
            })
        );
        // They mean nothing to another provider.
        let mut foreign = output;
        foreign.provider = "another".to_owned();
        let body = sent(ModelRequest { input: next(foreign), ..request() }).await;
        let keys: Vec<&String> = body["messages"][2].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["role", "content", "tool_calls"]);
    }
}

#[tokio::test]
async fn each_call_has_exactly_one_result() {
    let call = || InputItem::Model(answer("", &[("c1", "create_plan", "{}"), ("c2", "create_plan", "{}")]));
    let done = |id| result(id, "create_plan", "ok");
    for (input, complaint) in [
        (vec![call(), done("c1")], "no result for the call \"c2\""),
        (vec![call(), done("c1"), user("and?"), done("c2")], "no result for the call \"c2\""),
        (
            vec![call(), done("c1"), done("c1"), done("c2")],
            "a result for \"c1\", which no open call asked for",
        ),
        (vec![done("c9")], "a result for \"c9\", which no open call asked for"),
        (
            vec![InputItem::Model(answer("", &[("c1", "a", "{}"), ("c1", "b", "{}")])), done("c1")],
            "two calls \"c1\"",
        ),
    ] {
        let message = refused(ModelRequest { input, ..request() }).await;
        assert!(message.contains(&complaint.replace('"', "")), "{message}");
    }
    let twice = vec![call(), done("c2"), done("c1"), call(), done("c1"), done("c2")];
    assert_eq!(
        sent(ModelRequest { input: twice, ..request() }).await["messages"].as_array().unwrap().len(),
        7
    );
}

#[tokio::test]
async fn only_configured_models_are_asked() {
    let message = refused(ModelRequest { model: Some("expensive".to_owned()), ..request() }).await;
    assert!(message.contains("\"expensive\""), "{message}");
}

#[tokio::test]
async fn without_a_key_nothing_is_authorized() {
    let server = FakeServer::start_open(Reply::json(200, ANSWER)).await;
    let config = ChatCompletionsConfig { api_key: None, ..config(&server.base_url, false) };
    run(&ChatCompletionsProvider::new(config).unwrap(), request()).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}
