//! What goes back to the provider that said it, and the signs that a prompt was cut.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use harness_model::ModelOutput;
use harness_ports::{InputItem, ModelRequest};
use serde_json::{Value, json};
use tracing::{Event, Metadata, Subscriber, span};

use super::Row;
use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{answer, provider_on, request, result, run, user},
    wires::{ALL, Said, Wire},
};

pub(super) const CASES: &[Row] = &[
    (28, "sealed reasoning", &[Wire::Responses], |_| sealed_reasoning().boxed()),
    (29, "thinking between calls, redacted thinking", &[Wire::Messages], |_| thinking().boxed()),
    (30, "signatures and reasoning in a provider's own fields", &[Wire::Chat], |_| own_fields().boxed()),
    (31, "arguments with spaces, `1.10`, long integers", ALL, |wire| exact_arguments(wire).boxed()),
    (32, "a prompt that was cut in silence", ALL, |wire| cut_prompt(wire).boxed()),
];

/// The answer that a provider makes of a reply.
async fn answered(wire: Wire, reply: &Reply) -> ModelOutput {
    let server = FakeServer::start(reply.clone()).await;
    run(&provider_on(wire, &server.base_url, true), request()).await.unwrap().1
}

/// The conversation as it is sent when it goes on with results for the calls of an answer; byte for byte.
async fn sent_after(wire: Wire, output: &ModelOutput, change: impl FnOnce(&mut ModelRequest)) -> String {
    let mut input = vec![user("Hello"), InputItem::Model(output.clone())];
    input.extend(output.calls.iter().map(|call| result(call.call_id.as_str(), &call.name, "ok")));
    let mut request = ModelRequest { input, ..request() };
    change(&mut request);
    let server = FakeServer::start(Said::text(&["Hi"]).streamed(wire)).await;
    run(&provider_on(wire, &server.base_url, true), request).await.unwrap();
    server.bodies().remove(0)
}

async fn sealed_reasoning() {
    let wire = Wire::Responses;
    let items = [
        r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm \u00e9"}],"encrypted_content":"gAAA==","score":1.10}"#,
        r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Let me see.","annotations":[]}]}"#,
        r#"{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gAAB=="}"#,
        r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"shop_orders_get_order","arguments":"{ \"n\": 1.10 }"}"#,
    ];
    let output = items.join(",");
    let response = format!(r#"{{"id":"r","status":"completed","output":[{output}]}}"#);
    let events: String = items
        .iter()
        .enumerate()
        .map(|(at, item)| {
            format!(
                "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{item}}}\n\n"
            )
        })
        .collect();
    let done = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    let streamed = Reply::new(200, "text/event-stream", format!("{events}{done}"));
    for reply in [Reply::json(200, &response), streamed] {
        let said = answered(wire, &reply).await;
        assert_eq!(said.text, "Let me see.");
        let body = sent_after(wire, &said, |_| {}).await;
        assert!(body.contains(&output), "{body}\nlacks\n{output}");
        assert!(body.contains(r#""include":["reasoning.encrypted_content"]"#), "{body}");
        // Nothing of it goes to another provider or to another model of this one.
        let mut foreign = said.clone();
        foreign.provider = "another".to_owned();
        let elsewhere = sent_after(wire, &foreign, |_| {}).await;
        let other_model =
            sent_after(wire, &said, |request| request.model = Some("other-model".to_owned())).await;
        // A seal over text that lost a secret is broken.
        let mut masked = said.clone();
        masked.raw_items[0]["items"][2]["encrypted_content"] = "gA[REDACTED]".into();
        let masked = sent_after(wire, &masked, |_| {}).await;
        for body in [elsewhere, other_model, masked] {
            assert!(!body.contains("rs_1") && !body.contains("gAA"), "{body}");
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(
                body["input"],
                json!([
                    {"role": "user", "content": "Hello"},
                    {"type": "message", "role": "assistant", "content": "Let me see."},
                    {"type": "function_call", "call_id": "c1", "name": "shop_orders_get_order", "arguments": "{ \"n\": 1.10 }"},
                    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
                ])
            );
        }
    }
    // Without its seal reasoning is dropped: nothing is kept at the provider that its id could stand for.
    let open = response.replace(r#""encrypted_content":"gAAA==","#, "");
    let body = sent_after(wire, &answered(wire, &Reply::json(200, &open)).await, |_| {}).await;
    assert!(!body.contains("reasoning\""), "{body}");
}

async fn thinking() {
    let wire = Wire::Messages;
    let blocks = [
        r#"{"type":"thinking","thinking":"First \u00e9","signature":"c2ln"}"#,
        r#"{"type":"redacted_thinking","data":"ZGF0YQ=="}"#,
        r#"{"type":"text","text":"Let me see."}"#,
        r#"{"type":"tool_use","id":"c1","name":"create_plan","input":{ "n": 1.10 }}"#,
        r#"{"type":"thinking","thinking":"","signature":"c2ln","score":1.10}"#,
        r#"{"type":"tool_use","id":"c2","name":"create_plan","input":{}}"#,
    ];
    let content = blocks.join(",");
    let whole = format!(r#"{{"content":[{content}],"stop_reason":"tool_use"}}"#);
    let body = sent_after(wire, &answered(wire, &Reply::json(200, &whole)).await, |_| {}).await;
    assert!(body.contains(&content), "{body}\nlacks\n{content}");

    let piece =
        |index: u8, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let begin = |index: u8, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let events = [
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(0, json!({"type": "thinking_delta", "thinking": "First "})),
        piece(0, json!({"type": "thinking_delta", "thinking": "this"})),
        piece(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        begin(1, json!({"type": "redacted_thinking", "data": "ZGF0YQ=="})),
        begin(2, json!({"type": "text", "text": ""})),
        piece(2, json!({"type": "text_delta", "text": "See."})),
        piece(2, json!({"type": "citations_delta", "citation": {"url": "u", "n": 1}})),
        begin(3, json!({"type": "tool_use", "id": "c1", "name": "create_plan", "input": {}})),
        piece(3, json!({"type": "input_json_delta", "partial_json": "{ \"n\": "})),
        piece(3, json!({"type": "input_json_delta", "partial_json": "1.10 }"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
    ];
    let said = answered(wire, &wire.stream(&events)).await;
    let expected = concat!(
        r#"{"type":"thinking","thinking":"First this","signature":"c2ln"},"#,
        r#"{"type":"redacted_thinking","data":"ZGF0YQ=="},"#,
        r#"{"type":"text","text":"See.","citations":[{"url":"u","n":1}]},"#,
        r#"{"type":"tool_use","id":"c1","name":"create_plan","input":{ "n": 1.10 }}"#,
    );
    let body = sent_after(wire, &said, |_| {}).await;
    assert!(body.contains(expected), "{body}\nlacks\n{expected}");
    // Nothing of it goes to another model; then there is no budget for thinking in the middle of the calls either.
    let elsewhere = sent_after(wire, &said, |request| {
        request.model = Some("other-model".to_owned());
        request.reasoning_effort = Some("500".to_owned());
    })
    .await;
    assert!(!elsewhere.contains("thinking") && elsewhere.contains("See."), "{elsewhere}");
    let here = sent_after(wire, &said, |request| request.reasoning_effort = Some("500".to_owned())).await;
    assert!(here.contains(r#""thinking":{"type":"enabled","budget_tokens":500}"#), "{here}");
    let mut masked = said;
    masked.raw_items[0]["items"][0]["thinking"] = "First [REDACTED]".into();
    assert!(!sent_after(wire, &masked, |_| {}).await.contains(r#""type":"thinking""#));
}

async fn own_fields() {
    let details = r#"[{"type":"reasoning.encrypted","data":"b="}]"#;
    let extra = r#"{"google":{"thought_signature":"s=="}}"#;
    let message = format!(
        r#"{{"content":null,"reasoning_details":{details},"tool_calls":[{{"id":"c1","function":{{"name":"create_plan","arguments":"{{}}"}},"extra_content":{extra}}}]}}"#
    );
    let whole = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"tool_calls"}}]}}"#);
    let streamed = format!(r#"{{"choices":[{{"delta":{message},"finish_reason":"tool_calls"}}]}}"#);
    for reply in [Reply::json(200, &whole), Reply::events(&[&streamed])] {
        let body = sent_after(Wire::Chat, &answered(Wire::Chat, &reply).await, |_| {}).await;
        assert!(body.contains(&format!(r#""extra_content":{extra}"#)), "{body}");
        assert!(body.contains(&format!(r#""reasoning_details":{details}"#)), "{body}");
    }
}

async fn exact_arguments(wire: Wire) {
    let exact = r#"{ "p": 1.10, "n": 12345678901234567890123, "t": " x " }"#;
    let said = Said::call("c1", "create_plan", &[exact]);
    let mut outputs = vec![answered(wire, &said.streamed(wire)).await];
    if wire != Wire::Messages {
        outputs.push(answered(wire, &said.replies(wire)[1]).await);
    }
    outputs.push(answer("", &[("c1", "create_plan", exact)]));
    for output in outputs {
        assert_eq!(output.calls[0].arguments, exact);
        let body = sent_after(wire, &output, |_| {}).await;
        let sent = match wire {
            Wire::Chat | Wire::Responses => json!(exact).to_string(),
            Wire::Messages => exact.to_owned(),
        };
        assert!(body.contains(&sent), "{body}\nlacks\n{sent}");
    }
}

async fn cut_prompt(wire: Wire) {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let said = |input| Said { usage: Some((input, 0, 3)), ..Said::text(&["Hi"]) };
    let long = ModelRequest { input: vec![user(&"word ".repeat(10_000))], ..request() };
    for (input, expected) in [(12_000, 0), (512, 1)] {
        let server = FakeServer::start(said(input).streamed(wire)).await;
        run(&provider_on(wire, &server.base_url, true), long.clone()).await.unwrap();
        assert_eq!(*warnings.0.lock().unwrap(), expected, "{wire:?}, {input} tokens");
    }
}

/// Counts warnings of this crate.
#[derive(Clone, Debug, Default)]
struct Warnings(Arc<Mutex<usize>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN && metadata.target().starts_with("harness_providers")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        *self.0.lock().unwrap() += 1;
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
