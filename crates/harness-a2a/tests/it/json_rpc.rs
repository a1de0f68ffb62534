//! The JSON-RPC envelope: what is no request, and what every request is checked for first.

use serde_json::{Value, json};

use crate::server::{Server, start};

async fn post(server: &Server, body: impl Into<reqwest::Body>) -> Value {
    let request = server.http.post(format!("{}/", server.base)).header("content-type", "application/json");
    let response = request.header("a2a-version", "1.0").body(body).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

fn request(id: Value, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

#[tokio::test]
async fn what_is_no_request_is_refused_under_the_right_id() {
    let server = start().await;
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let table: Vec<(String, i64, Value)> = vec![
        (String::new(), -32700, Value::Null),
        ("{\"jsonrpc\":".to_owned(), -32700, Value::Null),
        ("\u{0}\u{1}".to_owned(), -32700, Value::Null),
        (deep, -32600, Value::Null),
        ("[]".to_owned(), -32600, Value::Null),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\"}]".to_owned(), -32600, Value::Null),
        ("\"text\"".to_owned(), -32600, Value::Null),
        (json!({"id": 1, "method": "GetTask"}).to_string(), -32600, json!(1)),
        (json!({"jsonrpc": "1.0", "id": "a", "method": "GetTask"}).to_string(), -32600, json!("a")),
        (json!({"jsonrpc": "2.0", "id": 1}).to_string(), -32600, json!(1)),
        (json!({"jsonrpc": "2.0", "id": 1, "method": 5}).to_string(), -32600, json!(1)),
        (json!({"jsonrpc": "2.0", "id": 1.5, "method": "GetTask"}).to_string(), -32600, Value::Null),
        (json!({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}).to_string(), -32600, Value::Null),
        (request(json!(1), "message/send").to_string(), -32601, json!(1)),
        (request(json!("x"), &"m".repeat(9_000)).to_string(), -32601, json!("x")),
        (request(Value::Null, "GetTask").to_string(), -32602, Value::Null),
        (
            json!({"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": [1]}).to_string(),
            -32602,
            json!(2),
        ),
        (
            json!({"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": 5}}).to_string(),
            -32602,
            json!(2),
        ),
    ];
    for (body, code, id) in table {
        let answer = post(&server, body.clone()).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body:.80}");
        assert!(answer.to_string().len() < 1_000, "errors are short");
    }
}

#[tokio::test]
async fn the_binding_is_found_where_some_clients_look_for_it() {
    let server = start().await;
    for path in ["/a2a/v1", "/a2a/v1/"] {
        let request = server.http.post(format!("{}{path}", server.base)).header("a2a-version", "1.0");
        let request = request.header("content-type", "application/json");
        let response = request.body(request_of("ListTasks")).send().await.unwrap();
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["totalSize"]), (&json!(1), &json!(0)), "{path}");
    }
}

#[tokio::test]
async fn ids_are_echoed_as_they_came() {
    let server = start().await;
    for id in [json!("a"), json!(7), json!(-7), json!(u64::MAX)] {
        let answer = post(&server, request(id.clone(), "ListTasks").to_string()).await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["totalSize"], 0);
    }
}

#[tokio::test]
async fn a_version_is_required_in_header_or_query() {
    let server = start().await;
    let table = [
        (None, "", false),
        (Some(""), "", false),
        (Some("0.3"), "", false),
        (Some("9.9"), "", false),
        (Some("1.7"), "", false),
        (Some("1"), "", false),
        (Some("1.0"), "", true),
        (Some("1.0.1"), "", true),
        (Some("1.0.x"), "", false),
        (Some("1.0."), "", false),
        (Some("1.0.1.2"), "", false),
        (Some("1.0, 0.3"), "", false),
        (None, "?A2A-Version=1.0", true),
        (Some("0.3"), "?A2A-Version=1.0", false),
    ];
    for (header, query, accepted) in table {
        let (rpc, rest) = (format!("{}/{query}", server.base), format!("{}/tasks{query}", server.base));
        let rpc = server.http.post(rpc).header("content-type", "application/json");
        let rpc = rpc.body(request(json!(1), "ListTasks").to_string());
        for (binding, request) in [("rpc", rpc), ("rest", server.http.get(rest))] {
            let request = match header {
                Some(version) => request.header("a2a-version", version),
                None => request,
            };
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let text = response.text().await.unwrap();
            assert_eq!(text.contains("VERSION_NOT_SUPPORTED"), !accepted, "{header:?} {query} {text}");
            if binding == "rest" {
                assert_eq!(status, if accepted { 200 } else { 400 });
            } else {
                assert_eq!(text.contains("-32009"), !accepted);
            }
        }
    }
}

#[tokio::test]
async fn versions_that_disagree_are_refused() {
    let server = start().await;
    for (second, accepted) in [("1.0.1", true), ("", true), ("0.3", false)] {
        for order in [["1.0", second], [second, "1.0"]] {
            let request = server.http.get(format!("{}/tasks", server.base));
            let request = request.header("a2a-version", order[0]).header("a2a-version", order[1]);
            let text = request.send().await.unwrap().text().await.unwrap();
            assert_eq!(text.contains("VERSION_NOT_SUPPORTED"), !accepted, "{order:?} {text}");
        }
    }
}

#[tokio::test]
async fn a_body_that_does_not_say_it_is_json_is_refused() {
    // A page of another origin can send such bodies without asking.
    let server = start().await;
    for content_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        for path in ["/", "/message:send"] {
            let request = server.http.post(format!("{}{path}?A2A-Version=1.0", server.base));
            let request = match content_type {
                Some(value) => request.header("content-type", value),
                None => request,
            };
            let body = request.body(request_of("SendMessage")).send().await.unwrap().text().await.unwrap();
            assert!(body.contains("CONTENT_TYPE_NOT_SUPPORTED"), "{content_type:?} {path} {body}");
        }
    }
    assert!(server.engine.started().is_empty());
}

fn request_of(method: &str) -> String {
    request(json!(1), method).to_string()
}
