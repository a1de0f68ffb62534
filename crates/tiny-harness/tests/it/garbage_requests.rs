//! Requests that make no sense: a clear error on both bindings, nothing changed, the server still there.

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, http, message, refusal, state},
    rig::{Rig, Server},
    stored,
};

const SCRIPT: &str = "[[turns]]\ntext = \"You said: {{message_text}}\"\n";

/// A body and the reason it is refused for.
struct Garbage {
    what: &'static str,
    body: String,
    reason: &'static str,
}

fn garbage(what: &'static str, body: impl ToString, reason: &'static str) -> Garbage {
    Garbage { what, body: body.to_string(), reason }
}

/// Parameters of SendMessage that are JSON and wrong.
fn wrong_params() -> Vec<Garbage> {
    let with = |key: &str, value: Value| {
        let mut message = message("m-1", "hello");
        message[key] = value;
        json!({"message": message})
    };
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let invalid = "INVALID_PARAMS";
    vec![
        garbage("an array", json!([1, 2]), invalid),
        garbage("no message", json!({}), invalid),
        garbage("a message that is a number", json!({"message": 7}), invalid),
        garbage("parts that are a text", with("parts", json!("hello")), invalid),
        garbage("no parts", with("parts", json!([])), invalid),
        garbage("a part that says nothing", with("parts", json!([{}])), invalid),
        garbage("an id that is a list", with("messageId", json!(["m-1"])), invalid),
        garbage("an empty id", with("messageId", json!("")), invalid),
        garbage("an endless id", with("messageId", json!("m".repeat(5_000))), invalid),
        garbage("a role there is not", with("role", json!("ROLE_KING")), invalid),
        garbage("a task id that is an object", with("taskId", json!({"id": 1})), invalid),
        garbage("bytes that are not base64", with("parts", json!([{"raw": "%%%"}])), invalid),
        garbage("JSON too deep to read", with("metadata", json!({"deep": deep})), "INVALID_REQUEST"),
        garbage("a thousand parts", with("parts", json!(vec![json!({"text": "x"}); 1_000])), invalid),
    ]
}

fn post(http: &Client, server: &Server, binding: Binding, body: String) -> RequestBuilder {
    let path = match binding {
        Binding::JsonRpc => "/",
        Binding::Rest => "/message:send",
    };
    let request = http.post(format!("{}{path}", server.url)).body(body);
    request
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .header("x-participant-id", "ada")
}

/// Sends a body and expects a refusal in the binding's own form.
async fn refused(http: &Client, server: &Server, binding: Binding, what: &str, body: String, reason: &str) {
    let response = post(http, server, binding, body).send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{binding:?} {what}: {text}"));
    let refusal = refusal(&answer["error"]);
    assert_eq!(refusal.reason, reason, "{binding:?} {what}: {refusal:?}");
    assert_eq!(status == 200, binding == Binding::JsonRpc, "{binding:?} {what}: {status}");
    assert!(refusal.message.len() < 1_000, "{binding:?} {what}: {} bytes", refusal.message.len());
    for internal in ["/crates/", "panicked", "SELECT", "sqlite", ".rs:"] {
        assert!(!text.contains(internal), "{binding:?} {what} tells internals: {text}");
    }
}

async fn nothing_changed(rig: &Rig, server: &Server) {
    for table in ["workflows", "tasks", "blocks", "journal", "records", "deliveries"] {
        let rows = stored::texts(&rig.store(), &format!("SELECT CAST(count(*) AS TEXT) FROM {table}"));
        assert_eq!(rows, ["0"], "rows of {table}");
    }
    assert_eq!(server.model_calls(), 0);
    let log = server.process.stderr();
    assert!(!log.contains("panicked"), "{log}");
    let task = server.ada().send(message("m-ok", "still there?")).await;
    assert_eq!(state(&task), "COMPLETED");
}

#[tokio::test]
async fn malformed_and_mistyped_requests_are_refused_and_change_nothing() {
    let rig = Rig::new(SCRIPT);
    let (server, http) = (rig.serve().await, http());
    for binding in BOTH {
        for body in [
            "",
            "{",
            "{\"message\": ",
            "null",
            "\"hello\"",
            "[]",
            "{}x",
            "\u{0}\u{1}\u{2}",
            "not json at all",
        ] {
            let response = post(&http, &server, binding, body.to_owned()).send().await.unwrap();
            let answer: Value = response.json().await.unwrap();
            assert!(answer["error"]["message"].is_string(), "{binding:?} {body:?}: {answer}");
        }
        refused(&http, &server, binding, "half an object", "{\"a\":".to_owned(), "PARSE_ERROR").await;
        for Garbage { what, body, reason } in wrong_params() {
            let body = match binding {
                Binding::Rest => body,
                Binding::JsonRpc => {
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{body}}}")
                }
            };
            refused(&http, &server, binding, what, body, reason).await;
        }
    }
    let calls = [
        ("no version", json!({"id": 1, "method": "SendMessage", "params": {}}), "INVALID_REQUEST"),
        ("no method", json!({"jsonrpc": "2.0", "id": 1, "params": {}}), "INVALID_REQUEST"),
        (
            "a method there is not",
            json!({"jsonrpc": "2.0", "id": 1, "method": "DeleteAll"}),
            "METHOD_NOT_FOUND",
        ),
        ("a method that is a number", json!({"jsonrpc": "2.0", "id": 1, "method": 7}), "INVALID_REQUEST"),
    ];
    for (what, body, reason) in calls {
        refused(&http, &server, Binding::JsonRpc, what, body.to_string(), reason).await;
    }
    let nowhere = http.get(format!("{}/tasks/%00%ff/../../etc/passwd", server.url)).send().await.unwrap();
    assert!(nowhere.status().is_client_error(), "{}", nowhere.status());
    nothing_changed(&rig, &server).await;
}

#[tokio::test]
async fn a_body_of_two_megabytes_is_refused_before_it_is_read() {
    let rig = Rig::new(SCRIPT);
    let (server, http) = (rig.serve().await, http());
    let text = "x".repeat(2 << 20);
    for binding in BOTH {
        let body = match binding {
            Binding::Rest => json!({"message": message("m-1", &text)}),
            Binding::JsonRpc => {
                let params = json!({"message": message("m-1", &text)});
                json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
            }
        };
        let response = post(&http, &server, binding, body.to_string()).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 413, "{binding:?}");
        let answer = response.text().await.unwrap();
        assert_eq!(answer, "request too large", "{binding:?}");
    }
    nothing_changed(&rig, &server).await;
}
