//! A conversation of ten turns: each request begins with the bytes of the one before it, which is what provider caches
//! live from.

use harness_ports::{InputItem, ModelRequest};
use harness_providers::{EndpointConfig, HttpProvider};
use serde_json::{Value, json};

use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{config, request, result, run, user},
    wires::{ALL, Wire},
};

const TURNS: usize = 10;
/// What moves through a conversation on Messages; it is not part of what is cached.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// An answer with reasoning and two calls of the same ids as in every other turn, or with words.
fn reply(wire: Wire, turn: usize) -> Reply {
    let calls = turn.is_multiple_of(2);
    let arguments = format!(r#"{{ "turn": {turn}, "amount": 1.10 }}"#);
    let body = match (wire, calls) {
        (Wire::Chat, true) => format!(
            r#"{{"choices":[{{"message":{{"content":"Let me see.","reasoning_content":"Hm {turn}","tool_calls":[{{"id":"c1","function":{{"name":"create_plan","arguments":{text}}}}},{{"id":"c2","function":{{"name":"shop_orders_get_order","arguments":{text}}}}}]}},"finish_reason":"tool_calls"}}]}}"#,
            text = json!(arguments)
        ),
        (Wire::Responses, true) => format!(
            r#"{{"status":"completed","output":[{{"type":"reasoning","id":"rs_{turn}","summary":[],"encrypted_content":"g{turn}=="}},{{"type":"function_call","id":"fc","call_id":"c1","name":"create_plan","arguments":{text}}},{{"type":"function_call","id":"fd","call_id":"c2","name":"shop_orders_get_order","arguments":{text}}}]}}"#,
            text = json!(arguments)
        ),
        (Wire::Messages, true) => format!(
            r#"{{"content":[{{"type":"thinking","thinking":"Hm {turn}","signature":"c2ln"}},{{"type":"text","text":"Let me see."}},{{"type":"tool_use","id":"c1","name":"create_plan","input":{arguments}}},{{"type":"tool_use","id":"c2","name":"shop_orders_get_order","input":{arguments}}}],"stop_reason":"tool_use"}}"#
        ),
        (Wire::Chat, false) => {
            json!({"choices": [{"message": {"content": format!("Done {turn}.")}, "finish_reason": "stop"}]}).to_string()
        }
        (Wire::Responses, false) => {
            json!({"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": format!("Done {turn}.")}]}]}).to_string()
        }
        (Wire::Messages, false) => {
            json!({"content": [{"type": "text", "text": format!("Done {turn}.")}], "stop_reason": "end_turn"}).to_string()
        }
    };
    Reply::json(200, &body)
}

/// The bytes of ten requests, each with the answer to the one before it.
async fn ten_turns(wire: Wire, stream: bool) -> Vec<String> {
    let server = FakeServer::start_with((0..TURNS).map(|turn| reply(wire, turn)).collect()).await;
    let config = EndpointConfig { stream, ..config(&server.base_url, stream) };
    let mut input = vec![user("What is with order 48213?")];
    for turn in 0..TURNS {
        // A new provider each time, as after a restart.
        let provider = HttpProvider::new(wire.api(), config.clone()).unwrap();
        let request = ModelRequest { input: input.clone(), ..request() };
        let (_, output) = run(&provider, request).await.unwrap();
        // As it is when it comes back from the store.
        let output: harness_model::ModelOutput =
            serde_json::from_str(&serde_json::to_string(&output).unwrap()).unwrap();
        let calls = output.calls.clone();
        assert_eq!(calls.is_empty(), turn % 2 == 1, "{output:?}");
        input.push(InputItem::Model(output));
        input.extend(calls.iter().map(|call| result(call.call_id.as_str(), &call.name, "{\"ok\": true}")));
        if calls.is_empty() {
            input.push(user(&format!("And then, {turn}?")));
        }
    }
    server.bodies()
}

#[tokio::test]
async fn every_request_begins_with_the_one_before_it() {
    for wire in ALL {
        for stream in [true, false] {
            let bodies = ten_turns(*wire, stream).await;
            assert_eq!(bodies.len(), TURNS);
            for pair in bodies.windows(2) {
                let [before, after] = [&pair[0], &pair[1]].map(|body| body.replace(MARK, ""));
                // All but the brackets that end the conversation and the request.
                let prefix = before.strip_suffix("]}").unwrap();
                assert!(after.starts_with(prefix), "{wire:?}\n{before}\n{after}");
                assert!(after.len() > before.len());
            }
            assert_eq!(bodies, ten_turns(*wire, stream).await, "equal requests are equal bytes");
        }
    }
}

#[tokio::test]
async fn the_newest_ends_of_the_history_are_marked_for_caching() {
    let bodies = ten_turns(Wire::Messages, true).await;
    for (turn, body) in bodies.iter().enumerate() {
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
        let messages = body["messages"].as_array().unwrap();
        let marked: Vec<usize> =
            (0..messages.len()).filter(|at| messages[*at].to_string().contains("cache_control")).collect();
        let last = messages.len() - 1;
        let expected = if turn == 0 { vec![last] } else { vec![last - 2, last] };
        assert_eq!(marked, expected, "{body}");
        let blocks = messages[last]["content"].as_array().unwrap();
        assert_eq!(blocks.last().unwrap()["cache_control"]["type"], "ephemeral");
    }
}

#[tokio::test]
async fn a_task_is_one_cache_key_on_responses() {
    for body in ten_turns(Wire::Responses, false).await {
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&body["prompt_cache_key"], &body["store"]), (&json!("task-1"), &json!(false)));
    }
}
