//! Golden files: what goes over the wire, byte for byte after sorting the keys. `UPDATE=1` rewrites them.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, message, reply},
    server::start,
};

/// Compares with the golden file of this name.
pub(crate) fn golden(name: &str, value: &Value) {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let text = serde_json::to_string_pretty(&sorted).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/wire/{name}.json"));
    #[expect(clippy::disallowed_methods, reason = "the developer asks for new golden files")]
    let update = std::env::var("UPDATE").is_ok_and(|value| value == "1");
    if update {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}.json; UPDATE=1 rewrites it");
}

#[tokio::test]
async fn streams_of_a_turn() {
    for text in ["hello", "ask", "tools", "finish"] {
        let mut seen = Vec::new();
        for binding in BOTH {
            let server = start().await;
            let params = json!({"message": message("m-1", text)});
            let frames = server.caller(binding, "ada").stream("SendStreamingMessage", params).await;
            seen.push(json!(
                frames.iter().map(|(id, event)| json!({"id": id, "data": event})).collect::<Vec<_>>()
            ));
        }
        assert_eq!(seen[0], seen[1], "both bindings tell the same");
        golden(&format!("stream_{text}"), &seen[0]);
    }
}

#[tokio::test]
async fn tasks_as_they_are_read() {
    let server = start().await;
    let ada = server.caller(Binding::JsonRpc, "ada");
    let task = ada.send(message("m-1", "ask")).await;
    let mut full = reply("m-2", "finish", &task);
    full["parts"] = json!([
        {"text": "finish"},
        {"data": {"a": [1, null]}},
        {"raw": "AAEC/w==", "filename": "bytes.bin"},
        {"url": "https://example.com/x", "mediaType": "text/plain", "metadata": {"k": "v"}},
    ]);
    full["referenceTaskIds"] = json!(["other"]);
    full["extensions"] = json!(["https://example.com/ext"]);
    ada.send(full).await;
    golden("get_task", &ada.ok("GetTask", json!({"id": task["id"]})).await);
    golden("list_tasks", &ada.ok("ListTasks", json!({})).await);
}

#[tokio::test]
async fn errors_of_both_bindings() {
    let server = start().await;
    for (binding, name) in [(Binding::JsonRpc, "error_json_rpc"), (Binding::Rest, "error_rest")] {
        let mut errors = Vec::new();
        for (operation, params) in
            [("GetTask", json!({"id": "missing"})), ("SendMessage", json!({"message": message("", "x")}))]
        {
            let response = server.caller(binding, "ada").request(operation, params).send().await.unwrap();
            errors.push(serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap());
        }
        golden(name, &json!(errors));
    }
}
