//! Tool servers on stdio that die, flood, hang and talk nonsense while a task uses them.

use serde_json::Value;

use crate::{
    api::{message, state, tool_calls, words},
    rig::{Rig, Server},
};

/// Two calls of a read-only tool, some time apart.
const READS_TWICE: &str = r#"
[[turns]]
when = { turn = 3, last_tool_result = { name = "odd/tools.read", contains = "read 2" } }
text = "Read twice."

[[turns]]
when = { turn = 2, last_tool_result = { name = "odd/tools.read", contains = "read 1" } }
delay_ms = 400
calls = [{ name = "odd/tools.read", arguments = { ms = 2 } }]

[[turns]]
when = { turn = 1 }
calls = [{ name = "odd/tools.read", arguments = { ms = 1 } }]
"#;

/// One call of the tool that the message names; the answer says what the model was shown.
const CALLS_ONE: &str = r#"
[[turns]]
when = { last_is = "tool_result", shown_contains = "tool.outcome_unknown" }
text = "Nobody knows."

[[turns]]
when = { last_tool_result = { name = "odd/tools.read", contains = "read 1" } }
text = "It worked."

[[turns]]
when = { last_is = "tool_result" }
text = "Something else."

[[turns]]
when = { text_equals = "act" }
calls = [{ name = "odd/tools.act", arguments = {} }]

[[turns]]
when = { text_equals = "sleep" }
calls = [{ name = "odd/tools.sleep", arguments = { ms = 600000 } }]

[[turns]]
when = { text_equals = "read" }
calls = [{ name = "odd/tools.read", arguments = {} }]

[[turns]]
text = "You said: {{message_text}}"
"#;

/// Memory that a flood of 20 MB may cost: less than keeping it would.
const FLAT_BYTES: u64 = 12 << 20;

/// A server whose tools misbehave in this way.
async fn odd(mode: &str, script: &str) -> (Rig, Server) {
    let rig = Rig::new(script).adverse(mode);
    let server = rig.serve().await;
    (rig, server)
}

/// Nothing of the trouble is left: another task runs, and its words come back.
async fn is_healthy(server: &Server) {
    let task = server.ada().send(message("m-health", "still there?")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "You said: still there?"));
}

async fn only_call(server: &Server, task: &Value) -> Value {
    let calls = tool_calls(&server.ada(), task).await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls[0].clone()
}

#[tokio::test]
async fn a_server_that_died_between_calls_is_started_again() {
    let (rig, server) = odd("dies-after", READS_TWICE).await;
    let task = server.ada().send(message("m-1", "read twice")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "Read twice."));
    assert_eq!(rig.seen("calls").len(), 2);
    assert_eq!(rig.seen("starts").len(), 2);
    assert_eq!(server.logged("MCP server is started again").len(), 1, "{}", server.process.stderr());
}

#[tokio::test]
async fn a_call_in_which_the_server_dies_is_unknown_and_not_repeated() {
    let (rig, server) = odd("dies-inside", CALLS_ONE).await;
    let task = server.ada().send(message("m-1", "act")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "Nobody knows."));
    let call = only_call(&server, &task).await;
    assert_eq!(call["state"], "outcome_unknown");
    assert!(call["duration_ms"].as_u64().unwrap() < 1_000, "{call}");
    assert_eq!(rig.seen("calls").len(), 1, "it was not tried again");
    is_healthy(&server).await;
}

#[tokio::test]
async fn a_flood_on_stderr_costs_no_memory() {
    let (_rig, server) = odd("stderr-flood", CALLS_ONE).await;
    is_healthy(&server).await;
    let before = server.process.peak_memory_bytes();
    let task = server.ada().send(message("m-1", "read")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "It worked."));
    let grown = server.process.peak_memory_bytes() - before;
    assert!(before > 0 && grown < FLAT_BYTES, "grew by {grown} bytes");
}

#[tokio::test]
async fn a_call_that_hangs_is_given_up_after_its_time() {
    let rig = Rig::new(CALLS_ONE)
        .adverse("plain")
        .tables("[limits]\ntool_timeout = 1\n\n[retries.default]\nmaximum_attempts = 1");
    let server = rig.serve().await;
    let task = server.ada().send(message("m-1", "sleep")).await;
    assert_eq!(state(&task), "COMPLETED", "the model reads that it took too long and goes on");
    let call = only_call(&server, &task).await;
    assert_ne!(call["state"], "succeeded", "{call}");
    crate::rig::until("the server is told", async || rig.seen("cancelled").len() == 1).await;
    let task = server.ada().send(message("m-2", "read")).await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(only_call(&server, &task).await["state"], "succeeded", "the server is still usable");
}

#[tokio::test]
async fn nonsense_between_the_frames_is_passed_over() {
    let (_rig, server) = odd("nonsense", CALLS_ONE).await;
    let task = server.ada().send(message("m-1", "read")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "It worked."));
}

#[tokio::test]
async fn nothing_but_nonsense_fails_the_call_and_not_the_server() {
    let rig = Rig::new(CALLS_ONE)
        .adverse("nonsense-forever")
        .tables("[limits]\ntool_timeout = 5\n\n[retries.default]\nmaximum_attempts = 1");
    let server = rig.serve().await;
    let before = server.process.peak_memory_bytes();
    let task = server.ada().send(message("m-1", "act")).await;
    assert_eq!(state(&task), "COMPLETED", "{}", words(&task));
    assert_ne!(only_call(&server, &task).await["state"], "succeeded");
    assert!(server.process.peak_memory_bytes() - before < FLAT_BYTES * 4);
    is_healthy(&server).await;
}

#[tokio::test]
async fn a_server_that_does_not_start_is_named_and_the_rest_works() {
    let (_rig, server) = odd("crashes-at-start", CALLS_ONE).await;
    let log = server.process.stderr();
    assert!(log.contains("odd/tools"), "{log}");
    assert!(!log.contains("hunter2"), "secrets of a server stay out of the log: {log}");
    let task = server.ada().send(message("m-1", "read")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "Something else."));
    assert_eq!(only_call(&server, &task).await["state"], "failed");
    is_healthy(&server).await;
}
