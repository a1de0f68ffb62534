//! How tool calls are put together.

use futures::FutureExt;
use serde_json::{Value, json};

use super::{Row, check, check_all};
use crate::{
    fake_server::Reply,
    wires::{ALL, End, Said, Wire},
};

pub(super) const CASES: &[Row] = &[
    (2, "interleaved pieces of parallel calls", ALL, |wire| interleaved(wire).boxed()),
    (3, "pieces without an index", ALL, |wire| no_index(wire).boxed()),
    (4, "one index for every call", ALL, |wire| one_index(wire).boxed()),
    (5, "gaps between indexes, and huge ones", ALL, |wire| huge_index(wire).boxed()),
    (6, "arguments as an object, none, names repeated", ALL, |wire| odd_arguments(wire).boxed()),
    (7, "arguments that are not JSON", ALL, |wire| not_json(wire).boxed()),
    (8, "`stop` with calls", ALL, |wire| stop_with_calls(wire).boxed()),
];

const BOTH: &str = r#"x create_plan {"a":1}, y shop/orders.get_order {"b": 1.10}, ToolCalls"#;

fn both() -> Said {
    Said {
        calls: vec![
            ("x", "create_plan", vec!["{\"a\"", ":1}"]),
            ("y", "shop_orders_get_order", vec!["{\"b\":", " 1.10}"]),
        ],
        ..Said::default()
    }
}

/// The pieces of two calls, one of each in turn. Items that end are left to the pieces.
fn interleave(events: &[Value], wire: Wire) -> Vec<Value> {
    let of = |event: &Value| match wire {
        Wire::Chat => event["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64(),
        Wire::Responses => event["output_index"].as_u64(),
        Wire::Messages => event["index"].as_u64(),
    };
    let is_end = |event: &Value| {
        matches!(event["type"].as_str(), Some("response.output_item.done" | "content_block_stop"))
    };
    let of_call = |number| events.iter().filter(move |event| of(event) == Some(number) && !is_end(event));
    let mut mixed: Vec<Value> = events.iter().take_while(|event| of(event).is_none()).cloned().collect();
    for (first, second) in of_call(0).zip(of_call(1)) {
        mixed.extend([second.clone(), first.clone()]);
    }
    mixed.extend(events.last().cloned());
    mixed
}

/// A response that does not repeat its output at the end, as some servers do not.
fn forget_output(events: &mut [Value]) {
    if let Some(response) = events.last_mut().and_then(|event| event.get_mut("response")) {
        response["output"] = json!([]);
    }
}

async fn interleaved(wire: Wire) {
    let mut events = interleave(&both().events(wire), wire);
    if wire == Wire::Messages {
        // Blocks are in the order in which they begin.
        events.swap(2, 3);
    }
    check(wire, &wire.stream(&events), BOTH).await;
    forget_output(&mut events);
    check(wire, &wire.stream(&events), BOTH).await;
    let whole = both().whole(wire).to_string().replace("{\"b\":1.1}", "{\"b\": 1.10}");
    check(wire, &Reply::json(200, &whole), BOTH).await;
}

/// Sets or removes the numbers of all pieces.
fn number_all(events: &mut [Value], number: &Value) {
    for event in events {
        for pointer in ["/choices/0/delta/tool_calls/0", ""] {
            let Some(fields) = event.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
            for name in ["index", "output_index"] {
                if number.is_null() {
                    fields.remove(name);
                } else if fields.contains_key(name) {
                    fields.insert(name.to_owned(), number.clone());
                }
            }
        }
    }
}

async fn no_index(wire: Wire) {
    let mut events = both().events(wire);
    number_all(&mut events, &Value::Null);
    check(wire, &wire.stream(&events), BOTH).await;
    forget_output(&mut events);
    check(wire, &wire.stream(&events), BOTH).await;
    let mut events = Said { text: vec!["H", "i"], ..both() }.events(wire);
    rotate_ids(&mut events);
    forget_output(&mut events);
    check(wire, &wire.stream(&events), &format!(r#""Hi", {BOTH}"#)).await;
}

/// Another id in every event, as some gateways have it; then the index counts.
fn rotate_ids(events: &mut [Value]) {
    for (number, event) in events.iter_mut().enumerate() {
        for pointer in ["/item_id", "/item/id"] {
            if let Some(id) = event.pointer_mut(pointer) {
                *id = format!("id-{number}").into();
            }
        }
    }
}

async fn one_index(wire: Wire) {
    let mut events = both().events(wire);
    number_all(&mut events, &json!(0));
    check(wire, &wire.stream(&events), BOTH).await;
    forget_output(&mut events);
    check(wire, &wire.stream(&events), BOTH).await;
}

async fn huge_index(wire: Wire) {
    let mut events = both().events(wire);
    for event in &mut events {
        for pointer in ["/choices/0/delta/tool_calls/0/index", "/output_index", "/index"] {
            if let Some(index) = event.pointer_mut(pointer) {
                *index = json!(4_000_000_000_u64 + 7 * index.as_u64().unwrap());
            }
        }
    }
    check(wire, &wire.stream(&events), BOTH).await;
    forget_output(&mut events);
    check(wire, &wire.stream(&events), BOTH).await;
}

async fn odd_arguments(wire: Wire) {
    let none = "x create_plan {}, ToolCalls";
    check_all(wire, &Said::call("x", "create_plan", &[]).replies(wire)[..1], none).await;
    check(wire, &Said::call("x", "create_plan", &[""]).streamed(wire), none).await;
    let exact = r#"x create_plan { "n": 12345678901234567890123, "p": 1.10 }, ToolCalls"#;
    let object = r#"{ "n": 12345678901234567890123, "p": 1.10 }"#;
    // Arguments as an object, whole and in the event that begins or ends a call.
    let text = match wire {
        Wire::Chat => format!(
            r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"x","function":{{"name":"create_plan","arguments":{object}}}}}]}},"finish_reason":"stop"}}]}}"#
        ),
        Wire::Responses => format!(
            r#"{{"status":"completed","output":[{{"type":"function_call","call_id":"x","name":"create_plan","arguments":{object}}}]}}"#
        ),
        Wire::Messages => format!(
            r#"{{"content":[{{"type":"tool_use","id":"x","name":"create_plan","input":{object}}}],"stop_reason":"tool_use"}}"#
        ),
    };
    check(wire, &Reply::json(200, &text), exact).await;
    let mut events: Vec<String> =
        Said::call("x", "create_plan", &[]).events(wire).iter().map(Value::to_string).collect();
    for event in &mut events {
        *event = event.replace(r#""input":{}"#, &format!(r#""input":{object}"#));
        *event = event.replace(r#""arguments":"""#, &format!(r#""arguments":{object}"#));
    }
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::new(200, "text/event-stream", format!("{text}{}", wire.end_of_stream()));
    check(wire, &reply, exact).await;
    // Id and name in every piece, or the beginning of the call twice.
    let mut events = Said::call("x", "create_plan", &["{\"a\"", ":1}"]).events(wire);
    for event in &mut events {
        if let Some(call) = event.pointer_mut("/choices/0/delta/tool_calls/0") {
            call["id"] = "x".into();
            call["function"]["name"] = "create_plan".into();
        }
    }
    if wire == Wire::Responses {
        events.insert(2, events[1].clone());
    }
    check(wire, &wire.stream(&events), r#"x create_plan {"a":1}, ToolCalls"#).await;
}

async fn not_json(wire: Wire) {
    let said = Said::call("x", "no_such_tool", &["{not", " json"]);
    check(wire, &said.streamed(wire), "x no_such_tool {not json, ToolCalls").await;
    if wire != Wire::Messages {
        check_all(wire, &said.replies(wire), "x no_such_tool {not json, ToolCalls").await;
    }
    // Cut off by the limit before the first argument: it must not run without any.
    let cut = Said::call("x", "create_plan", &[]).ending(End::Limit);
    check(wire, &cut.streamed(wire), "x create_plan , ToolCalls").await;
}

async fn stop_with_calls(wire: Wire) {
    check_all(wire, &both().ending(End::Stop).replies(wire)[..1], BOTH).await;
    let one = Said::call("x", "create_plan", &["{\"a\":1}"]).ending(End::Stop);
    check_all(wire, &one.replies(wire), r#"x create_plan {"a":1}, ToolCalls"#).await;
}
