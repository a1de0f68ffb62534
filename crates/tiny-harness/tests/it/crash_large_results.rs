//! Tool results that are too large for a model: bounded in front of it, kept behind it, readable after a kill.

use harness_model::limits::{HISTORY_PAYLOAD_BYTES_MAX, TOOL_RESULT_PREVIEW_BYTES};
use serde_json::Value;

use crate::{
    api::{message, reply, state, words},
    rig::{Rig, Server},
    stored,
};

/// Large results one after another, then slices of what was kept of them.
const SCRIPT: &str = r#"
[[turns]]
when = { last_is = "tool_result", text_contains = "slice", last_tool_result = { name = "read_result", contains = "[bytes 5000000 to 5000064 of" } }
text = "Read a slice."

[[turns]]
when = { last_is = "tool_result", text_contains = "search", last_tool_result = { name = "read_result", contains = "places with \"8191\"" } }
text = "Found it."

[[turns]]
when = { last_is = "tool_result", last_tool_result = { name = "read_result", contains = "result.unknown" } }
text = "There is nothing of that name."

[[turns]]
when = { last_is = "user", text_contains = "slice" }
calls = [{ name = "read_result", arguments = { handle = "HANDLE", offset = 5000000, length = 64 } }]

[[turns]]
when = { last_is = "user", text_contains = "search" }
calls = [{ name = "read_result", arguments = { handle = "HANDLE", search = "8191" } }]

[[turns]]
when = { last_is = "user", text_contains = "unknown" }
calls = [{ name = "read_result", arguments = { handle = "r0000000000" } }]

[[turns]]
when = { asked = "odd/tools.big", turn = 4, last_is = "tool_result" }
text = "Seen all three."

[[turns]]
when = { turn = 3, last_tool_result = { name = "odd/tools.big", contains = "[Too large to show whole: 300000 bytes, 1 lines" } }
calls = [{ name = "odd/tools.big", arguments = { kind = "png" } }]

[[turns]]
when = { turn = 2, last_tool_result = { name = "odd/tools.big", contains = "[Too large to show whole: " } }
calls = [{ name = "odd/tools.big", arguments = { kind = "line" } }]

[[turns]]
when = { turn = 1 }
calls = [{ name = "odd/tools.big", arguments = { kind = "json" } }]
"#;

/// The handle of the largest kept result of the store.
fn handle(rig: &Rig) -> (String, u64) {
    let kept = stored::texts(&rig.store(), "SELECT value FROM records WHERE kind = 'spilled_result'");
    let kept = kept.iter().map(|value| serde_json::from_str::<Value>(value).unwrap());
    let kept = kept.map(|value| {
        (value["handle"].as_str().unwrap().to_owned(), value["text"]["bytes"].as_u64().unwrap())
    });
    kept.max_by_key(|(_, bytes)| *bytes).unwrap()
}

/// What the model was shown of each result of a call, in order.
fn shown(rig: &Rig) -> Vec<Value> {
    let (_folder, store) = stored::copy(&rig.store());
    let mut blocks = store.prepare("SELECT bytes FROM blocks ORDER BY id").unwrap();
    let blocks = blocks.query_map((), |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let items = blocks.filter_map(|bytes| serde_json::from_slice::<Value>(&bytes.unwrap()).ok());
    items.filter(|item| item.to_string().contains("odd/tools.big") && item.get("parts").is_some()).collect()
}

async fn ask(server: &Server, task: &Value, id: &str, text: &str) -> String {
    let task = server.ada().send(reply(id, text, task)).await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    words(&task).to_owned()
}

#[tokio::test]
async fn large_results_are_previewed_kept_and_readable_after_a_kill() {
    let rig = Rig::new(SCRIPT).conversations().adverse("plain");
    let server = rig.serve().await;
    let task = server.ada().send(message("m-1", "look")).await;
    assert_eq!(words(&task), "Seen all three.", "{task}");
    let (kept, bytes) = handle(&rig);
    assert!(bytes > 8 << 20, "all of it is kept: {bytes}");

    let results = shown(&rig);
    assert_eq!(results.len(), 3, "{results:?}");
    let texts = |result: &Value| {
        let parts = result["parts"].as_array().unwrap().iter();
        parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    for large in &results[..2] {
        let preview = &texts(large)[0];
        assert!(preview.starts_with("[Too large to show whole: ") && preview.contains("Left out below: "));
        assert!(preview.len() <= TOOL_RESULT_PREVIEW_BYTES, "{} bytes", preview.len());
    }
    assert!(results[2].to_string().contains("image/png"), "the picture is not dropped: {}", results[2]);

    server.kill().await;
    let script = SCRIPT.replace("HANDLE", &kept);
    std::fs::write(rig.path("model.toml"), script).unwrap();
    let server = rig.serve().await;
    assert_eq!(ask(&server, &task, "m-2", "a slice").await, "Read a slice.");
    assert_eq!(ask(&server, &task, "m-3", "a search").await, "Found it.");
    assert_eq!(ask(&server, &task, "m-4", "something unknown").await, "There is nothing of that name.");

    let largest = |query: &str| stored::texts(&rig.store(), query).iter().map(String::len).max().unwrap();
    for query in ["SELECT event FROM journal", "SELECT event FROM log", "SELECT record FROM tasks"] {
        let bytes = largest(query);
        assert!(bytes <= HISTORY_PAYLOAD_BYTES_MAX, "{query}: {bytes}");
    }
    let snapshots = stored::texts(&rig.store(), "SELECT CAST(state AS TEXT) FROM snapshots");
    assert!(snapshots.iter().all(|state| state.len() <= HISTORY_PAYLOAD_BYTES_MAX));
}
