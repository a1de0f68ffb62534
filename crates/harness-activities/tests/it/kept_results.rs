//! Results that are too large for the model: a preview, a handle, and ways to read on.

use harness_agent::ToolResultFacts;
use harness_model::{ItemPart, codes, limits};
use harness_ports::{RecordKind, ToolPart};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, SECRET, task_id},
    tool_calls::returning,
};

const MIB: usize = 1_048_576;

fn png() -> ToolPart {
    ToolPart::Binary { media_type: "image/png".to_owned(), bytes: b"\x89PNG\r\n\x1a\n...".as_slice().into() }
}

/// JSON of a bit more than `bytes`, on one line.
fn large_json(bytes: usize) -> String {
    let rows: Vec<Value> = (0..bytes / 64)
        .map(|n| json!({"order": n, "state": "shipped", "note": "nothing to see here, move along"}))
        .collect();
    Value::from(rows).to_string()
}

async fn called(fixture: &Fixture) -> ToolResultFacts {
    let input = fixture.tool_input("shop.dump", json!({})).await;
    fixture.call_tool(&input).await.unwrap()
}

/// The handle that a preview names.
fn handle(part: &ItemPart) -> String {
    let ItemPart::Text(text) = part else { panic!("{part:?}") };
    assert!(text.len() <= limits::TOOL_RESULT_PREVIEW_BYTES);
    let after = text.split("kept as ").nth(1).unwrap_or_else(|| panic!("no handle in {text:.200}"));
    after.split('.').next().unwrap().to_owned()
}

async fn read(fixture: &Fixture, arguments: Value) -> ToolResultFacts {
    let input = fixture.tool_input("read_result", arguments).await;
    fixture.call_tool(&input).await.unwrap()
}

async fn read_text(fixture: &Fixture, arguments: Value) -> String {
    let facts = read(fixture, arguments).await;
    assert!(!facts.is_error);
    let text = fixture.result_text(&facts).await;
    assert!(text.len() <= limits::TOOL_RESULT_INLINE_BYTES_MAX);
    text
}

#[tokio::test]
async fn eight_mebibytes_one_long_line_and_an_image() {
    let json = large_json(8 * MIB);
    let line = "needle in a line ".repeat(18_000);
    assert!(json.len() > 8 * MIB && line.len() > 300_000);
    let fixture = returning(vec![ToolPart::Text(json.clone()), ToolPart::Text(line.clone()), png()]);
    let facts = called(&fixture).await;
    let parts = fixture.result_parts(&facts).await;
    assert_eq!(parts.len(), 3);
    let (first, second) = (handle(&parts[0]), handle(&parts[1]));
    assert_ne!(first, second);
    let ItemPart::Text(preview) = &parts[0] else { panic!() };
    assert!(
        preview.starts_with(&format!(
            "[Too large to show whole: {} bytes, 1 lines, kept as {first}.",
            json.len()
        ))
    );
    let ItemPart::Binary { media_type, block } = &parts[2] else { panic!("{:?}", parts[2]) };
    assert_eq!(media_type, "image/png");
    assert!(fixture.bytes(block).await.starts_with(b"\x89PNG"));
    assert!(facts.item.chars < 20_000);

    let slice = read_text(&fixture, json!({"handle": first, "offset": 4 * MIB, "length": 1_000})).await;
    let (words, content) = slice.split_once('\n').unwrap();
    assert_eq!(words, format!("[bytes 4194304 to 4195304 of {}; next offset 4195304]", json.len()));
    assert_eq!(content, &json[4 * MIB..4 * MIB + 1_000]);
    let found = read_text(&fixture, json!({"handle": first, "search": "\"order\":65536,"})).await;
    assert!(found.starts_with("[1 places"), "{found:.200}");
    assert!(found.contains("\"order\":65536,\"state\":\"shipped\""));
    let found = read_text(&fixture, json!({"handle": second, "search": "NEEDLE"})).await;
    assert!(found.len() <= limits::READ_RESULT_BYTES_MAX && found.contains("there are more"));
}

#[tokio::test]
async fn a_rerun_keeps_the_handle_and_the_bytes() {
    let fixture = returning(vec![ToolPart::Text("x".repeat(100_000))]);
    let first = called(&fixture).await;
    let records = fixture.store.records(RecordKind::SpilledResult, &task_id(), 10).await.unwrap();
    assert_eq!(called(&fixture).await, first);
    assert_eq!(fixture.store.records(RecordKind::SpilledResult, &task_id(), 10).await.unwrap(), records);
    assert_eq!(records.len(), 1);
}

#[tokio::test]
async fn structured_content_is_kept_with_lines() {
    let value: Value = serde_json::from_str(&large_json(200_000)).unwrap();
    let fixture = returning(vec![ToolPart::Data(value.clone())]);
    let parts = fixture.result_parts(&called(&fixture).await).await;
    let handle = handle(&parts[0]);
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let slice = read_text(&fixture, json!({"handle": handle, "offset": offset})).await;
        let (words, content) = slice.split_once('\n').unwrap();
        text.push_str(content);
        match words.split("next offset ").nth(1) {
            Some(next) => offset = next.trim_end_matches(']').parse::<usize>().unwrap(),
            None => break,
        }
    }
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    assert!(text.lines().count() > 1_000);
}

#[tokio::test]
async fn what_is_kept_has_no_secrets() {
    let fixture =
        returning(vec![ToolPart::Text(format!("{} {SECRET} {}", "x".repeat(400_000), "y".repeat(9)))]);
    let parts = fixture.result_parts(&called(&fixture).await).await;
    let found = read_text(&fixture, json!({"handle": handle(&parts[0]), "search": "REDACTED"})).await;
    assert!(found.starts_with("[1 places") && !found.contains(SECRET));
}

#[tokio::test]
async fn only_the_handles_of_this_task_can_be_read() {
    let fixture = returning(vec![ToolPart::Text("x".repeat(100_000))]);
    let mut input = fixture.tool_input("shop.dump", json!({})).await;
    input.task_id = "task-2".into();
    let facts = fixture.call_tool(&input).await.unwrap();
    let others = handle(&fixture.result_parts(&facts).await[0]);
    for handle in [others.as_str(), "r0000000000", "../../etc", ""] {
        let facts = read(&fixture, json!({"handle": handle})).await;
        assert!(facts.is_error);
        assert_eq!(facts.code, Some(codes::RESULT_UNKNOWN));
        assert!(
            fixture.result_text(&facts).await.starts_with("[result.unknown] this task has no kept result")
        );
    }
}

#[tokio::test]
async fn an_offset_behind_the_end_is_an_error_that_says_so() {
    let fixture = returning(vec![ToolPart::Text("x".repeat(100_000))]);
    let handle = handle(&fixture.result_parts(&called(&fixture).await).await[0]);
    for offset in [json!(100_000), json!(u64::MAX)] {
        let facts = read(&fixture, json!({"handle": handle, "offset": offset})).await;
        assert_eq!(facts.code, Some(codes::TOOL_INVALID_ARGUMENTS));
        assert!(fixture.result_text(&facts).await.contains("has 100000 bytes"));
    }
}

#[tokio::test]
async fn a_kept_result_outlives_the_process() {
    let store = harness_testkit::MemoryStore::new();
    let mut fixture = returning(vec![ToolPart::Text("z".repeat(100_000))]);
    fixture.store = store.clone();
    fixture.begin_task("Dump it").await;
    let handle = handle(&fixture.result_parts(&called(&fixture).await).await[0]);
    let mut restarted = Fixture::new();
    restarted.store = store.reopen();
    let slice = read_text(&restarted, json!({"handle": handle, "offset": 99_990})).await;
    assert_eq!(slice, "[bytes 99990 to 100000 of 100000; this is the end]\nzzzzzzzzzz");
}
