//! Why answers end.

use futures::FutureExt;
use serde_json::{Value, json};

use super::{Row, check, check_all};
use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{describe, provider_on, request, run},
    wires::{ALL, End, Said, Wire},
};

pub(super) const CASES: &[Row] = &[
    (21, "a refusal", ALL, |wire| refusal(wire).boxed()),
    (22, "incomplete: the limit, a filter", ALL, |wire| incomplete(wire).boxed()),
    (23, "complete at exactly the cap", ALL, |wire| at_the_cap(wire).boxed()),
    (24, "a paused turn, the end of the window", &[Wire::Messages], |wire| paused(wire).boxed()),
    (25, "nothing, or nothing but reasoning", ALL, |wire| nothing(wire).boxed()),
];

const FILTERED: &str = "The provider's content filter stopped the answer.";

async fn refusal(wire: Wire) {
    let expected = r#"refusal "I cannot do that.", Refusal"#;
    match wire {
        Wire::Chat => {
            let piece = |text: &str| json!({"choices": [{"delta": {"refusal": text}}]});
            let stop = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
            check(wire, &wire.stream(&[piece("I cannot "), piece("do that."), stop]), expected).await;
            let message = json!({"content": null, "refusal": "I cannot do that."});
            let whole = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
            check(wire, &Reply::json(200, &whole.to_string()), expected).await;
        }
        Wire::Responses => {
            let part = json!({"type": "refusal", "refusal": "I cannot do that."});
            let item = json!({"type": "message", "id": "m", "role": "assistant", "content": [part]});
            let response = json!({"status": "completed", "output": [item]});
            let piece = |text: &str| json!({"type": "response.refusal.delta", "item_id": "m", "delta": text});
            let mut events = vec![piece("I cannot "), piece("do that.")];
            events.push(json!({"type": "response.completed", "response": response}));
            check(wire, &wire.stream(&events), expected).await;
            events[2]["response"]["output"] = json!([]);
            check(wire, &wire.stream(&events), expected).await;
            check(wire, &Reply::json(200, &response.to_string()), expected).await;
        }
        Wire::Messages => {
            let said = Said::text(&["I cannot ", "do that."]).ending(End::Filter);
            check_all(wire, &said.replies(wire), &format!(r#""I cannot do that.", {expected}"#)).await;
            let mut whole = Said::default().ending(End::Filter).whole(wire);
            whole["stop_details"] = json!({"type": "refusal", "explanation": "I cannot do that."});
            check(wire, &Reply::json(200, &whole.to_string()), expected).await;
            let mut events = Said::default().ending(End::Filter).events(wire);
            events.last_mut().unwrap()["delta"]["stop_details"] = whole["stop_details"].clone();
            check(wire, &wire.stream(&events), expected).await;
        }
    }
    // A filter without words, and a call that must not run.
    let said = Said::call("x", "create_plan", &["{}"]).ending(End::Filter);
    check_all(wire, &said.replies(wire), &format!("refusal {FILTERED:?}, Refusal")).await;
}

async fn incomplete(wire: Wire) {
    check_all(wire, &Said::text(&["Hi"]).ending(End::Limit).replies(wire), r#""Hi", Length"#).await;
    check_all(wire, &Said::default().ending(End::Limit).replies(wire), "Length").await;
    let filtered = match wire {
        Wire::Chat | Wire::Responses => format!(r#""Hi", refusal {FILTERED:?}, Refusal"#),
        Wire::Messages => r#""Hi", refusal "Hi", Refusal"#.to_owned(),
    };
    check_all(wire, &Said::text(&["Hi"]).ending(End::Filter).replies(wire), &filtered).await;
}

async fn at_the_cap(wire: Wire) {
    let said = |output| Said { usage: Some((5, 0, output)), ..Said::text(&["Hi"]) };
    check_all(wire, &said(1_000).replies(wire), r#""Hi", Length, in 5, cached 0, out 1000"#).await;
    check_all(wire, &said(999).replies(wire), r#""Hi", Stop, in 5, cached 0, out 999"#).await;
}

async fn paused(wire: Wire) {
    let search = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "a"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []});
    let first = json!({
        "content": [{"type": "text", "text": "Let me see. "}, search, found],
        "stop_reason": "pause_turn",
        "usage": {"input_tokens": 10, "output_tokens": 4},
    });
    let second = json!({
        "content": [{"type": "text", "text": "It is so."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 3},
    });
    let replies = [&first, &second].map(|body| Reply::json(200, &body.to_string())).to_vec();
    let server = FakeServer::start_with(replies).await;
    let provider = provider_on(wire, &server.base_url, true);
    let outcome = run(&provider, request()).await;
    assert_eq!(describe(&outcome), r#""Let me see. It is so.", Stop, in 30, out 7"#);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let resent = requests[1]["messages"].as_array().unwrap();
    assert_eq!(resent.last().unwrap(), &json!({"role": "assistant", "content": first["content"]}));
    // Later turns show the two parts as one answer.
    let (_, output) = outcome.unwrap();
    let input = vec![
        crate::outcome::user("Hello"),
        harness_ports::InputItem::Model(output),
        crate::outcome::user("Thanks"),
    ];
    run(&provider, harness_ports::ModelRequest { input, ..request() }).await.unwrap();
    let content = server.requests()[2]["messages"][1]["content"].clone();
    let blocks =
        [first["content"].as_array().unwrap().as_slice(), second["content"].as_array().unwrap()].concat();
    assert_eq!(content, Value::Array(blocks));
    // It does not go on for ever.
    let server = FakeServer::start(Reply::json(200, &first.to_string())).await;
    let outcome = run(&provider_on(wire, &server.base_url, true), request()).await;
    assert!(describe(&outcome).contains(r#"Other("pause_turn")"#), "{outcome:?}");
    assert_eq!(server.requests().len(), 9);
    // A pause with calls of ours is no pause.
    let mut with_call = Said::call("x", "create_plan", &["{\"a\":1}"]).whole(wire);
    with_call["stop_reason"] = "pause_turn".into();
    check(wire, &Reply::json(200, &with_call.to_string()), r#"x create_plan {"a":1}, ToolCalls"#).await;
    let mut full = Said::text(&["Hi"]).whole(wire);
    full["stop_reason"] = "model_context_window_exceeded".into();
    check(wire, &Reply::json(200, &full.to_string()), r#""Hi", Length"#).await;
}

async fn nothing(wire: Wire) {
    check_all(wire, &Said::default().replies(wire), "Empty, 200").await;
    check_all(wire, &Said::text(&[" \n"]).replies(wire), "Empty, 200").await;
    let thought: Value = match wire {
        Wire::Chat => {
            json!({"choices": [{"message": {"reasoning_content": "Hm."}, "finish_reason": "stop"}]})
        }
        Wire::Responses => {
            json!({"status": "completed", "output": [{"type": "reasoning", "id": "r", "summary": []}]})
        }
        Wire::Messages => {
            json!({"content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}], "stop_reason": "end_turn"})
        }
    };
    check(wire, &Reply::json(200, &thought.to_string()), "Empty, 200").await;
    let promised: Option<Value> = match wire {
        Wire::Chat => Some(
            json!({"choices": [{"message": {"content": "Let me look."}, "finish_reason": "tool_calls"}]}),
        ),
        Wire::Responses => None,
        Wire::Messages => {
            Some(json!({"content": [{"type": "text", "text": "Let me look."}], "stop_reason": "tool_use"}))
        }
    };
    if let Some(promised) = promised {
        check(wire, &Reply::json(200, &promised.to_string()), "Empty, 200").await;
    }
}
