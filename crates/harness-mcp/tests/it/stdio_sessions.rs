//! Sessions that end: respawned for the next call, repeated only where that is safe, gone at the end.

use std::time::Duration;

use harness_model::codes;
use harness_ports::{ToolErrorKind, ToolSource};
use serde_json::json;
use tokio::time::Instant;

use crate::rig::{LONG, Rig, State, call, eventually, is_alive, nothing, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_exits_after_each_answer_is_respawned_for_the_next_call() {
    let rig = Rig::start("dies-after").await;
    for n in 1..=4 {
        assert_eq!(rig.text("read", nothing()).await, format!("read {n}"));
        let pid = *rig.state.starts().last().unwrap();
        eventually("the process is gone", || !is_alive(pid)).await;
    }
    assert_eq!(rig.state.starts().len(), 4);
    assert_eq!(rig.text("act", nothing()).await, "act 5", "any tool may be called on a new process");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_races_with_the_exit_is_made_once_more() {
    let rig = Rig::start("dies-after").await;
    // Without waiting for the exit in between: the call meets a process that is about to go.
    for _ in 0..3 {
        rig.call("read", nothing()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_inside_a_call_without_hints_is_unknown_fast_and_never_repeated() {
    for mode in ["dies-inside", "dies-inside-with-child"] {
        let rig = Rig::start(mode).await;
        let began = Instant::now();
        let error = rig.call("act", nothing()).await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(1), "{mode}: {:?}", began.elapsed());
        assert_eq!(error.kind, ToolErrorKind::OutcomeUnknown, "{mode}");
        assert_eq!(error.code(), codes::TOOL_OUTCOME_UNKNOWN);
        assert_eq!(rig.state.calls().len(), 1, "{mode}");
        let pids = rig.state.starts();
        eventually("its children are gone too", || pids.iter().all(|pid| !is_alive(*pid))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_inside_a_repeatable_call_repeats_it_once_with_the_same_key() {
    for tool in ["read", "act_once"] {
        let rig = Rig::start("dies-inside-once").await;
        assert_eq!(rig.text(tool, nothing()).await, format!("{tool} 2"));
        assert_eq!(rig.state.calls(), vec![(tool.to_owned(), "key-1".to_owned()); 2]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_death_is_an_error_and_no_loop() {
    let rig = Rig::start("dies-inside").await;
    let error = rig.call("read", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::OutcomeUnknown);
    assert_eq!(rig.state.calls().len(), 2);
}

async fn kill(pid: u32) {
    std::process::Command::new("kill").arg("-9").arg(pid.to_string()).status().unwrap();
    eventually("the process is gone", || !is_alive(pid)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_no_longer_starts_is_not_hammered() {
    let rig = Rig::start("crashes-on-restart").await;
    kill(rig.state.starts()[0]).await;
    let mut refused_at_once = 0;
    let began = Instant::now();
    while refused_at_once < 3 {
        let starts = rig.state.starts().len();
        let error = rig.call("act", nothing()).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::NotSent, "{error}");
        assert_eq!(error.code(), codes::TOOL_UNAVAILABLE);
        if rig.state.starts().len() == starts {
            assert!(error.message.contains("keeps failing"), "{error}");
            refused_at_once += 1;
        }
        assert!(began.elapsed() < LONG);
    }
    assert!(rig.state.starts().len() < 12, "{} starts", rig.state.starts().len());
    assert!(rig.state.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_changed_with_a_restart_is_refused() {
    let rig = Rig::start("changes-on-restart").await;
    rig.call("read", nothing()).await.unwrap();
    kill(rig.state.starts()[0]).await;
    let error = rig.call("read", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::DefinitionChanged);
    assert_eq!(error.code(), codes::TOOL_SCHEMA_CHANGED);
    assert_eq!(rig.state.starts().len(), 2);
    assert_eq!(rig.state.calls().len(), 1, "the call was not sent");
    assert_eq!(rig.text("act", nothing()).await, "act 2", "tools that are as they were go on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_changed_while_connected_is_refused() {
    let rig = Rig::start("plain").await;
    rig.call("read", nothing()).await.unwrap();
    rig.call("change", nothing()).await.unwrap();
    let error = rig.call("read", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::DefinitionChanged);
    rig.call("act", nothing()).await.unwrap();
    assert_eq!(rig.state.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_changed_in_silence_is_noticed_when_the_listing_is_old() {
    let state = State::new();
    let options = harness_mcp::McpOptions { relist_after: Duration::ZERO, ..state.options() };
    let (tools, problems, _group) = start(vec![state.server("p/s", "changes-in-silence")], options).await;
    assert_eq!(problems, []);
    tools.call(call("p/s.read", nothing())).await.unwrap();
    tools.call(call("p/s.change", nothing())).await.unwrap();
    let error = tools.call(call("p/s.read", nothing())).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::DefinitionChanged);
    assert_eq!(state.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_written_before_the_exit_counts() {
    let rig = Rig::start("exits-with-answer").await;
    let output = rig.call("big", json!({"kind": "json"})).await.unwrap();
    assert!(!output.truncated);
    assert_eq!(rig.state.calls().len(), 1, "it was not needed twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_dead_or_stuck_server_does_not_disturb_another() {
    let states = [State::new(), State::new()];
    let servers = vec![states[0].server("p/bad", "dies-inside"), states[1].server("p/good", "plain")];
    let (tools, problems, _group) = start(servers, states[0].options()).await;
    assert_eq!(problems, []);
    let slow = tools.call(call("p/good.sleep", json!({"ms": 500})));
    let dying = tools.call(call("p/bad.act", nothing()));
    let (slow, dying) = tokio::join!(slow, dying);
    slow.unwrap();
    assert_eq!(dying.unwrap_err().kind, ToolErrorKind::OutcomeUnknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_leaves_no_process_behind() {
    let states = [State::new(), State::new()];
    let servers = vec![states[0].server("p/a", "plain"), states[1].server("p/b", "stubborn")];
    let (tools, problems, group) = start(servers, states[0].options()).await;
    assert_eq!(problems, []);
    let pids = [states[0].starts(), states[1].starts()].concat();
    assert_eq!(pids.len(), 3, "two servers and a child of one");
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    tools.shutdown().await;
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    let error = tools.call(call("p/a.read", nothing())).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::NotSent);
    assert!(group.shutdown(LONG).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_group_that_was_given_ends_the_servers_too() {
    let state = State::new();
    let (_tools, problems, group) = start(vec![state.server("p/a", "stubborn")], state.options()).await;
    assert_eq!(problems, []);
    assert!(group.shutdown(LONG).await);
    assert!(state.starts().iter().all(|pid| !is_alive(*pid)));
}
