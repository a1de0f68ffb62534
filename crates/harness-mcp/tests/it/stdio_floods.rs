//! Too much of everything: stderr, nonsense, results.

use std::fs;

use bytes::Bytes;
use harness_model::limits;
use harness_ports::{ToolErrorKind, ToolPart, ToolSource};
use serde_json::{Value, json};

use crate::rig::{Rig, is_alive, nothing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_megabytes_on_stderr_neither_block_nor_fill_anything() {
    let name = "stdio_floods::twenty_megabytes_on_stderr_neither_block_nor_fill_anything";
    if !std::env::args().any(|arg| arg == "--exact") {
        // Memory can only be measured in a process that does nothing else.
        let alone =
            std::process::Command::new(std::env::current_exe().unwrap()).args([name, "--exact"]).output();
        let output = alone.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let rig = Rig::start("stderr-flood").await;
    let before = resident_bytes();
    assert_eq!(rig.text("act", nothing()).await, "act 1");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 4 * 1024 * 1024, "memory grew by {grown} bytes");
    rig.tools.shutdown().await;
    let [file] = rig.tools.diagnostics().try_into().unwrap();
    let kept = fs::metadata(&file).unwrap().len();
    assert!(kept > 1_000 && kept < 2 * 1024 * 1024, "{kept} bytes kept");
    assert!(fs::read_to_string(&file).unwrap().contains("[output dropped]"));
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_on_stdout_is_skipped() {
    let rig = Rig::start("nonsense").await;
    assert_eq!(rig.text("act", nothing()).await, "act 1");
    assert_eq!(rig.state.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_nonsense_ends_the_server_and_the_call() {
    let rig = Rig::start("nonsense-forever").await;
    let error = rig.call("act", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::OutcomeUnknown);
    let pid = rig.state.starts()[0];
    crate::rig::eventually("the process is gone", || !is_alive(pid)).await;
    assert_eq!(rig.state.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_results_arrive_whole_and_pictures_stay_pictures() {
    let rig = Rig::start("plain").await;
    let big = rig.call("big", json!({"kind": "json"})).await.unwrap();
    assert!(!big.truncated && !big.is_error);
    let [ToolPart::Data(data)] = big.parts.as_slice() else { panic!("{} parts", big.parts.len()) };
    assert_eq!(data["rows"].as_array().map(Vec::len), Some(8 * 1024));
    assert_eq!(data["rows"][8191]["filler"].as_str().map(str::len), Some(1000));

    let line = rig.call("big", json!({"kind": "line"})).await.unwrap();
    assert_eq!(line.parts, [ToolPart::Text("y".repeat(300_000))]);

    let png = rig.call("big", json!({"kind": "png"})).await.unwrap();
    let [ToolPart::Binary { media_type, bytes }] = png.parts.as_slice() else { panic!("{png:?}") };
    assert_eq!(media_type, "image/png");
    assert_eq!(bytes.slice(..8), Bytes::from_static(b"\x89PNG\r\n\x1a\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_beyond_the_limit_is_cut_and_says_so() {
    let rig = Rig::start("plain").await;
    let huge = rig.call("big", json!({"kind": "huge"})).await.unwrap();
    assert!(huge.truncated);
    let [ToolPart::Text(text)] = huge.parts.as_slice() else { panic!("{} parts", huge.parts.len()) };
    assert_eq!(text.len(), limits::TOOL_RESULT_BYTES_MAX);
    assert_eq!(rig.text("read", Value::Object(Default::default())).await, "read 2", "the session goes on");
}
