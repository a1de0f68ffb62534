//! Starting: what is registered, what a child sees, and what a broken server costs the others.

use std::time::Duration;

use harness_mcp::{McpOptions, ServerConfig, ServerTransport};
use harness_model::codes;
use harness_ports::{ToolErrorKind, ToolSource};
use tokio::time::Instant;

use crate::rig::{LONG, Rig, State, call, nothing, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_registered_sorted_and_with_their_hints() {
    let rig = Rig::start("plain").await;
    assert_eq!(rig.problems, []);
    let registered: Vec<_> = rig
        .tools
        .catalogue()
        .into_iter()
        .map(|tool| (tool.name, tool.idempotent, tool.deduplicates))
        .collect();
    let tool = |name: &str, idempotent, deduplicates| (format!("p/s.{name}"), idempotent, deduplicates);
    assert_eq!(
        registered,
        [
            tool("act", false, false),
            tool("act_once", false, true),
            tool("big", true, false),
            tool("change", false, false),
            tool("fail", false, false),
            tool("read", true, false),
            tool("sleep", true, false),
        ]
    );
    let error = rig.call("nope", nothing()).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::NotFound);
    assert_eq!(error.code(), codes::TOOL_NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_sees_its_own_variables_and_six_of_ours() {
    let state = State::new();
    let copy = state.path().join("environ");
    let server = ServerConfig {
        registry_prefix: "p/env".to_owned(),
        transport: ServerTransport::Stdio {
            // No MCP server, but one that shows its environment as it is.
            command: "cp".to_owned(),
            args: vec!["/proc/self/environ".to_owned(), copy.to_str().unwrap().to_owned()],
            env: [("PLUGIN_DATA".to_owned(), "/data".to_owned())].into(),
            cwd: None,
        },
    };
    let (_tools, problems, _group) = start(vec![server], state.options()).await;
    assert_eq!(problems.len(), 1);
    let environ = std::fs::read_to_string(copy).unwrap();
    let mut names: Vec<_> =
        environ.split_terminator('\0').map(|variable| variable.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["PATH", "PLUGIN_DATA", "USER"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_servers_are_problems_and_the_others_work() {
    let states = [State::new(), State::new(), State::new()];
    let missing = ServerConfig {
        registry_prefix: "p/missing".to_owned(),
        transport: ServerTransport::Stdio {
            command: "no-such-program-anywhere".to_owned(),
            args: Vec::new(),
            env: Default::default(),
            cwd: None,
        },
    };
    let servers = vec![
        states[0].server("p/good", "plain"),
        states[1].server("p/crash", "crashes-at-start"),
        missing,
        states[2].server("p/good", "plain"),
    ];
    let (tools, mut problems, _group) = start(servers, states[0].options()).await;
    problems.sort_by_key(|problem| problem.message.clone());
    let [crash, twice, missing] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(crash.message.starts_with("MCP server p/crash closed"), "{crash}");
    assert!(crash.message.contains("exit status: 3"), "{crash}");
    assert!(crash.message.contains("cannot find the settings"), "{crash}");
    assert!(!crash.message.contains("hunter2"), "{crash}");
    assert!(twice.message.contains("configured more than once"), "{twice}");
    assert!(missing.message.contains("cannot be started"), "{missing}");
    assert!(problems.iter().all(|problem| problem.code == codes::TOOL_UNAVAILABLE && problem.tool.is_none()));
    assert_eq!(states[2].starts(), [] as [u32; 0]);
    tools.call(call("p/good.read", nothing())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_greets_is_given_up_in_time() {
    let (state, good) = (State::new(), State::new());
    let options = McpOptions { start_timeout: Duration::from_secs(2), ..state.options() };
    let began = Instant::now();
    let servers = vec![state.server("p/hang", "hangs-at-start"), good.server("p/good", "plain")];
    let (tools, problems, _group) = start(servers, options).await;
    assert!(began.elapsed() < LONG / 2);
    assert_eq!(problems.len(), 1);
    assert_eq!(
        problems[0].to_string(),
        "[tool.unavailable] MCP server p/hang does not answer within 2000 ms; its tools are not available"
    );
    tools.call(call("p/good.read", nothing())).await.unwrap();
    tools.shutdown().await;
    assert!(!crate::rig::is_alive(state.starts()[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_tools_are_left_out_one_by_one() {
    let rig = Rig::start("odd-tools").await;
    let mut left_out: Vec<_> = rig.problems.iter().map(|problem| problem.tool.clone().unwrap()).collect();
    left_out.sort();
    assert_eq!(left_out, ["bad_schema", "large_schema", "no good name", "read", "read"]);
    assert!(rig.problems.iter().all(|problem| problem.code == codes::PLUGIN_COMPONENT_SKIPPED));
    assert!(rig.tools.catalogue().iter().any(|tool| tool.name == "p/s.act"));
    rig.text("act", nothing()).await;
}
