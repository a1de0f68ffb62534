//! A real model behind the whole product. It has no sense, so shapes are asserted and never meanings.

use harness_testkit::{LocalModel, LocalModelKind};
use serde_json::json;

use crate::{
    api::{message, state},
    rig::{Rig, begun},
};

/// What the model is asked until it calls a tool; it does so most times.
const ORDERS: [&str; 6] = [
    "Look up order 48213.",
    "What is in order 48213?",
    "Where is my order 48377?",
    "Show me order 48213 please.",
    "Find order 48377.",
    "Order 48213?",
];

/// Rounds of them before the test gives up.
const ROUNDS: usize = 4;

/// States in which a turn can end. A model of this size also answers nothing at all, or what is no call.
const ENDS: [&str; 3] = ["COMPLETED", "INPUT_REQUIRED", "FAILED"];

#[tokio::test]
async fn a_real_model_calls_a_real_tool_inside_a_task() {
    let Some(model) = LocalModel::start(LocalModelKind::ToolCalls).await else { return };
    let tables = format!(
        "[model]\nprovider = \"local\"\n\n[providers.local]\nbase_url = {:?}\nmodel = \"smol\"\n\
         max_output_tokens = 48\ncontext_window_tokens = 8192\n\n\
         [context]\nmax_turns = 2\n\n[retries.default]\ninitial_interval = 0.1\nmaximum_attempts = 2\n",
        model.base_url
    );
    let args = json!(["mcp-demo", "orders", "--data", "${PLUGIN_DATA}"]);
    let servers = json!({"orders": {"type": "stdio", "command": "tiny-harness", "args": args}});
    // The model calls the first tool it is shown, and tools are sorted by name.
    let rig = Rig::without_model(&tables).plugin("a-shop", &servers);
    let server = rig.serve().await;
    for (number, order) in ORDERS.into_iter().cycle().take(ROUNDS * ORDERS.len()).enumerate() {
        let task = server.ada().send(message(&format!("m-{number}"), order)).await;
        assert!(ENDS.contains(&state(&task)), "{task}");
        let log = server.process.stderr();
        let runs = begun(&log);
        assert!(runs.iter().any(|run| run["activity"] == "invoke_model.v1"), "{log}");
        if runs.iter().any(|run| run["activity"] == "invoke_tool.v1") {
            return;
        }
    }
    panic!("no tool call in {} tasks\n{}", ROUNDS * ORDERS.len(), server.process.stderr());
}
