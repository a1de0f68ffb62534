//! What is sent on Responses and Messages. Chat Completions has its own file.

use std::sync::Arc;

use harness_model::{Finish, ItemPart};
use harness_ports::{InputItem, ModelErrorKind, ModelRequest};
use harness_providers::{Api, EndpointConfig, HttpProvider};
use serde_json::{Value, json};

use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{answer, config, provider_on, request, result, run, tool, user},
    wires::{Said, Wire},
};

const LONG_ID: &str =
    "call_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

async fn sent(wire: Wire, request: ModelRequest) -> Value {
    let server = FakeServer::start(Said::text(&["Hi"]).streamed(wire)).await;
    run(&provider_on(wire, &server.base_url, false), request).await.unwrap();
    server.requests().remove(0)
}

fn whole_request() -> ModelRequest {
    ModelRequest {
        model: Some("other-model".to_owned()),
        reasoning_effort: Some("low".to_owned()),
        response_format: Some(json!({"type": "object"})),
        ..request()
    }
}

/// A conversation with calls, results of all kinds, and words.
fn conversation() -> ModelRequest {
    let arguments = r#"{ "order_id": "48213" }"#;
    let calls = [
        ("c1", "shop/orders.get_order", arguments),
        (LONG_ID, "gone/tool.x", "not json"),
        ("functions.f:0", "create_plan", "[1]"),
    ];
    let failed = InputItem::ToolResult {
        call_id: LONG_ID.into(),
        name: "gone/tool.x".to_owned(),
        is_error: true,
        parts: Vec::new(),
    };
    let refused = harness_model::ModelOutput {
        refusal: Some("I cannot.".to_owned()),
        finish: Finish::Refusal,
        ..answer("", &[])
    };
    let input = vec![
        user("Hello"),
        InputItem::Model(answer("Let me see.", &calls)),
        failed,
        result("c1", "shop/orders.get_order", "{}"),
        result("functions.f:0", "create_plan", ""),
        user(" "),
        InputItem::Model(answer("", &[("c1", "create_plan", "{}")])),
        result("c1", "create_plan", "ok"),
        InputItem::Model(answer(" \n", &[])),
        user("And?"),
        InputItem::Model(refused),
    ];
    ModelRequest { input, ..request() }
}

#[tokio::test]
async fn a_whole_request_on_responses() {
    let body = sent(Wire::Responses, whole_request()).await;
    let schema = tool("x").input_schema;
    assert_eq!(
        body,
        json!({
            "model": "other-model",
            "instructions": "Be brief.",
            "max_output_tokens": 1000,
            "reasoning": {"effort": "low"},
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "task-1",
            "store": false,
            "stream": false,
            "text": {"format": {"type": "json_schema", "name": "response", "schema": {"type": "object"}, "strict": true}},
            "tools": [
                {"type": "function", "name": "create_plan", "description": "Does create_plan.", "parameters": schema, "strict": false},
                {
                    "type": "function",
                    "name": "shop_orders_get_order",
                    "description": "Does shop/orders.get_order. (registry name: shop/orders.get_order)",
                    "parameters": schema,
                    "strict": false,
                },
            ],
            "input": [{"role": "user", "content": "Hello"}],
        })
    );
}

#[tokio::test]
async fn a_plain_request_on_responses_has_nothing_that_was_not_asked_for() {
    let server = FakeServer::start(Said::text(&["Hi"]).streamed(Wire::Responses)).await;
    let api = Api::Responses { encrypted_reasoning: false };
    let provider = HttpProvider::new(api, config(&server.base_url, true)).unwrap();
    let request = ModelRequest {
        tools: Arc::default(),
        cache_key: "k".repeat(65),
        max_output_tokens: 9_000,
        ..request()
    };
    run(&provider, request).await.unwrap();
    let body = server.requests().remove(0);
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["model", "instructions", "max_output_tokens", "prompt_cache_key", "store", "stream", "input"]
    );
    assert_eq!(body["max_output_tokens"], 2_000);
    assert_eq!(body["prompt_cache_key"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn a_conversation_on_responses() {
    let body = sent(Wire::Responses, conversation()).await;
    let input = body["input"].as_array().unwrap();
    let long = input[3]["call_id"].as_str().unwrap();
    let dotted = input[4]["call_id"].as_str().unwrap();
    assert!(long.starts_with("call_") && long.len() < 64 && long != dotted, "{long}, {dotted}");
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let output =
        |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let said = |text: &str| json!({"type": "message", "role": "assistant", "content": text});
    assert_eq!(
        *input,
        [
            json!({"role": "user", "content": "Hello"}),
            said("Let me see."),
            call("c1", "shop_orders_get_order", r#"{ "order_id": "48213" }"#),
            call(long, "gone_tool_x", r#"{"value":"not json"}"#),
            call(dotted, "create_plan", r#"{"value":[1]}"#),
            output(long, "The call failed without a word."),
            output("c1", "{}"),
            output(dotted, ""),
            json!({"role": "user", "content": " "}),
            call("c1_2", "create_plan", "{}"),
            output("c1_2", "ok"),
            said(" \n"),
            json!({"role": "user", "content": "And?"}),
            said("I cannot."),
        ]
    );
}

#[tokio::test]
async fn a_whole_request_on_messages() {
    let body = sent(Wire::Messages, whole_request()).await;
    let schema = tool("x").input_schema;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body,
        json!({
            "model": "other-model",
            "max_tokens": 1000,
            "stream": false,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
            "tools": [
                {"name": "create_plan", "description": "Does create_plan.", "input_schema": schema},
                {
                    "name": "shop_orders_get_order",
                    "description": "Does shop/orders.get_order. (registry name: shop/orders.get_order)",
                    "input_schema": schema,
                },
            ],
            "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": mark}]}],
        })
    );
    let plain = ModelRequest { instructions: String::new(), ..request() };
    let body = sent(Wire::Messages, plain).await;
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "max_tokens", "stream", "tools", "messages"]);
    assert_eq!(body["tools"][1]["cache_control"], mark);
}

#[tokio::test]
async fn a_conversation_on_messages() {
    let body = sent(Wire::Messages, conversation()).await;
    let messages = body["messages"].as_array().unwrap();
    let long = messages[1]["content"][2]["id"].as_str().unwrap();
    let dotted = messages[1]["content"][3]["id"].as_str().unwrap();
    let text = |text: &str| json!({"type": "text", "text": text});
    let marked = |mut block: Value| {
        block["cache_control"] = json!({"type": "ephemeral"});
        block
    };
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let done =
        |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let failed = json!({
        "type": "tool_result",
        "tool_use_id": long,
        "content": "The call failed without a word.",
        "is_error": true,
    });
    assert_eq!(
        *messages,
        [
            json!({"role": "user", "content": [text("Hello")]}),
            json!({"role": "assistant", "content": [
                text("Let me see."),
                call("c1", "shop_orders_get_order", json!({"order_id": "48213"})),
                call(long, "gone_tool_x", json!({"value": "not json"})),
                call(dotted, "create_plan", json!({"value": [1]})),
            ]}),
            json!({"role": "user", "content": [
                failed,
                done("c1", "{}"),
                {"type": "tool_result", "tool_use_id": dotted},
                text("(no text)"),
            ]}),
            json!({"role": "assistant", "content": [call("c1_2", "create_plan", json!({}))]}),
            json!({"role": "user", "content": [done("c1_2", "ok"), marked(text("And?"))]}),
            json!({"role": "assistant", "content": [text("I cannot.")]}),
            json!({"role": "user", "content": [marked(text("Continue."))]}),
        ]
    );
}

#[tokio::test]
async fn the_user_has_the_first_word_on_messages() {
    let input = vec![InputItem::Model(answer("Welcome.", &[])), user("Hello")];
    let body = sent(Wire::Messages, ModelRequest { input, ..request() }).await;
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"type": "text", "text": "(no text)", "cache_control": {"type": "ephemeral"}}])
    );
    assert_eq!(body["messages"][1]["role"], "assistant");
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_it_is() {
    for wire in [Wire::Responses, Wire::Messages] {
        let server = FakeServer::start(Reply::json(200, "{}")).await;
        let provider = provider_on(wire, &server.base_url, true);
        let unanswered = vec![InputItem::Model(answer("", &[("c1", "create_plan", "{}")]))];
        for request in [
            ModelRequest { model: Some("expensive".to_owned()), ..request() },
            ModelRequest { input: unanswered, ..request() },
        ] {
            let error = run(&provider, request).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
        }
        if wire == Wire::Messages {
            let request = ModelRequest { reasoning_effort: Some("1000".to_owned()), ..request() };
            let error = run(&provider, request).await.unwrap_err();
            assert!(error.message.contains("leaves no room"), "{error}");
        }
        assert_eq!(server.requests().len(), 0);
    }
}

#[tokio::test]
async fn without_a_key_no_header_has_one() {
    for wire in [Wire::Responses, Wire::Messages] {
        let server = FakeServer::start_open(Said::text(&["Hi"]).streamed(wire)).await;
        let config = EndpointConfig { api_key: None, ..config(&server.base_url, true) };
        run(&HttpProvider::new(wire.api(), config).unwrap(), request()).await.unwrap();
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn bytes_are_named_on_every_wire() {
    let block = harness_model::BlockRef::to(b"123");
    let parts = vec![ItemPart::Binary { media_type: "image/png".to_owned(), block }];
    for wire in [Wire::Responses, Wire::Messages] {
        let input = vec![InputItem::User { parts: parts.clone() }];
        let body = sent(wire, ModelRequest { input, ..request() }).await;
        assert!(body.to_string().contains("[image/png, 3 bytes, not shown]"), "{body}");
    }
}
