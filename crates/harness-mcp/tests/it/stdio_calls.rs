//! Calls on a healthy server: parallel, in time, stopped, refused.

use std::time::Duration;

use futures::future::join_all;
use harness_model::codes;
use harness_ports::{ToolErrorKind, ToolPart, ToolSource};
use serde_json::json;
use tokio::time::Instant;

use crate::rig::{LONG, Rig, call, eventually, nothing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_run_in_parallel_on_one_process() {
    let rig = Rig::start("plain").await;
    let began = Instant::now();
    let outputs = join_all((0..10).map(|_| rig.call("sleep", json!({"ms": 500})))).await;
    assert!(outputs.iter().all(Result::is_ok));
    assert!(began.elapsed() < Duration::from_secs(4), "one after another takes 5 s");
    assert_eq!(rig.state.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_carries_its_key() {
    let rig = Rig::start("plain").await;
    let mut second = call("p/s.act", nothing());
    second.idempotency_key = "key-2".to_owned();
    rig.call("act", nothing()).await.unwrap();
    rig.tools.call(second).await.unwrap();
    let expected = [("act", "key-1"), ("act", "key-2")].map(|(tool, key)| (tool.to_owned(), key.to_owned()));
    assert_eq!(rig.state.calls(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_out_of_time_is_unknown_and_told_to_the_server() {
    let rig = Rig::start("plain").await;
    let mut slow = call("p/s.sleep", json!({"ms": 60_000}));
    slow.timeout = Duration::from_millis(300);
    let error = rig.tools.call(slow).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::OutcomeUnknown);
    assert_eq!(error.code(), codes::TOOL_OUTCOME_UNKNOWN);
    eventually("the server is told", || rig.state.cancelled() == 1).await;
    assert_eq!(rig.text("read", nothing()).await, "read 2", "the session goes on");
    assert_eq!(rig.state.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_call_ends_at_once_and_is_told_to_the_server() {
    let rig = Rig::start("plain").await;
    let slow = call("p/s.sleep", json!({"ms": 60_000}));
    let cancel = slow.cancel.clone();
    let stopping = async {
        eventually("the call arrives", || rig.state.calls().len() == 1).await;
        cancel.cancel();
        Instant::now()
    };
    let (ended, stopped_at) = tokio::join!(rig.tools.call(slow), stopping);
    assert!(stopped_at.elapsed() < Duration::from_secs(1));
    assert_eq!(ended.unwrap_err().kind, ToolErrorKind::Canceled);
    eventually("the server is told", || rig.state.cancelled() == 1).await;

    let never = call("p/s.act", nothing());
    never.cancel.cancel();
    assert_eq!(rig.tools.call(never).await.unwrap_err().kind, ToolErrorKind::Canceled);
    assert_eq!(rig.state.calls().len(), 1, "a call that was stopped before it began is not sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_failures_and_broken_answers_are_told_apart() {
    let rig = Rig::start("plain").await;
    let refused = rig.call("fail", json!({"kind": "refused"})).await.unwrap_err();
    assert_eq!(refused.kind, ToolErrorKind::Refused);
    assert!(refused.message.contains("ms must be [31ma number"), "{refused}");
    assert!(!refused.message.contains("abcdefghijkl"), "{refused}");

    let failed = rig.call("fail", json!({"kind": "internal"})).await.unwrap();
    assert!(failed.is_error);
    assert_eq!(failed.parts, [ToolPart::Text("The tool failed with MCP error -32603: disk full".to_owned())]);

    let failed = rig.call("fail", json!({"kind": "is-error"})).await.unwrap();
    assert!(failed.is_error);
    assert_eq!(failed.parts, [ToolPart::Text("no such file".to_owned())]);

    let began = Instant::now();
    let broken = rig.call("fail", json!({"kind": "broken"})).await.unwrap_err();
    assert_eq!(broken.kind, ToolErrorKind::OutcomeUnknown);
    assert!(began.elapsed() < LONG / 4, "it does not wait for the time-out");

    let odd = rig.call("fail", json!({"kind": "hologram"})).await.unwrap();
    assert_eq!(odd.parts, [ToolPart::Data(json!({"type": "hologram", "voxels": 8}))]);
    assert_eq!(rig.state.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_reading_costs_only_its_calls() {
    let rig = Rig::start("deaf").await;
    rig.call("act", nothing()).await.unwrap();
    // More than a pipe holds, so that the write cannot end.
    let mut stuck = call("p/s.act", json!({"filler": "x".repeat(2_000_000)}));
    stuck.timeout = Duration::from_secs(1);
    let error = rig.tools.call(stuck).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::OutcomeUnknown);
    // The next call gets a process that reads.
    std::fs::remove_file(rig.state.path().join("calls")).unwrap();
    assert_eq!(rig.text("act", nothing()).await, "act 1");
    assert_eq!(rig.state.starts().len(), 2);
}
