//! Stopping a server is never a cancel: tasks at work go on at the next start, whatever stopped it.

use std::{fs, path::PathBuf};

use harness_testkit::Ended;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::{
    api::{message, state, tool_calls, words},
    rig::{Rig, Server},
};

/// Looks an order up, and ships a replacement.
const SCRIPT: &str = r#"
[[turns]]
when = { last_tool_result = { name = "shop/orders.ship_replacement" } }
text = "It is on its way."

[[turns]]
when = { last_tool_result = { name = "shop/orders.get_order", contains = "Nimbus" } }
calls = [{ name = "shop/orders.ship_replacement", arguments = { order_id = "48213", address = "14 Harbour Lane" } }]

[[turns]]
when = { text_contains = "48213" }
calls = [{ name = "shop/orders.get_order", arguments = { order_id = "48213" } }]
"#;

/// A harness with the demo's order server, whose look-ups wait while a file is there.
pub(crate) struct Shop {
    pub(crate) rig: Rig,
    slow: PathBuf,
}

impl Shop {
    fn new() -> Self {
        Self::with("")
    }

    /// The same with more tables.
    pub(crate) fn with(tables: &str) -> Self {
        let args = json!(["mcp-demo", "orders", "--data", "${PLUGIN_DATA}"]);
        let servers = json!({"orders": {"type": "stdio", "command": "tiny-harness", "args": args}});
        let rig =
            Rig::new(SCRIPT).server("shutdown_grace = \"PT1S\"").plugin("shop", &servers).tables(tables);
        let data = rig.path("plugin-data/shop");
        fs::create_dir_all(&data).unwrap();
        let slow = data.join("slow-get-order");
        fs::write(&slow, "").unwrap();
        Self { rig, slow }
    }

    fn deeds(&self) -> Vec<String> {
        let ledger = fs::read_to_string(self.rig.path("plugin-data/shop/orders-ledger.jsonl")).unwrap();
        let tool = |line: &str| {
            let entry: Value = serde_json::from_str(line).unwrap();
            entry["tool"].as_str().unwrap().to_owned()
        };
        ledger.lines().map(tool).collect()
    }

    /// A server whose task waits inside a tool.
    pub(crate) async fn busy(&self) -> (Server, Value) {
        let server = self.rig.serve().await;
        let task = server.ada().send_off(message("m-1", "order 48213 is broken")).await;
        crate::rig::until("the tool is at work", async || {
            fs::exists(self.rig.path("plugin-data/shop/orders-ledger.jsonl")).unwrap()
                && self.deeds() == ["get_order"]
        })
        .await;
        (server, task)
    }

    /// Goes on on a new server, which never saw the task in any other state than working.
    pub(crate) async fn goes_on(&self, task: &Value) {
        let id = task["id"].as_str().unwrap();
        let server = self.rig.serve().await;
        assert_eq!(state(&server.ada().task(id).await), "WORKING");
        fs::remove_file(&self.slow).unwrap();
        let task = server.ada().task_in(id, "COMPLETED").await;
        assert_eq!(words(&task), "It is on its way.");
        let events = server.ada().subscribe(id, Some(0)).await.rest().await;
        let states: Vec<_> =
            events.iter().map(|(_, event)| &event["statusUpdate"]["status"]["state"]).collect();
        assert!(
            states.iter().all(|state| ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
                .contains(&state.as_str().unwrap_or("TASK_STATE_WORKING"))),
            "{states:?}"
        );
        let calls = tool_calls(&server.ada(), &task).await;
        assert!(calls.iter().all(|call| call["state"] == "succeeded"), "{calls:?}");
        assert_eq!(
            self.deeds(),
            ["get_order", "get_order", "ship_replacement"],
            "looked up again, shipped once"
        );
    }
}

#[tokio::test]
async fn a_terminated_server_leaves_in_time_and_its_task_goes_on() {
    let shop = Shop::new();
    let (server, task) = shop.busy().await;
    let began = Instant::now();
    let ended: Ended = server.stop().await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{ended:?}");
    shop.goes_on(&task).await;
}

#[tokio::test]
async fn the_task_of_a_killed_server_goes_on() {
    let shop = Shop::new();
    let (server, task) = shop.busy().await;
    server.kill().await;
    shop.goes_on(&task).await;
}

#[tokio::test]
async fn an_interrupted_server_says_so_with_its_status() {
    let shop = Shop::new();
    let (server, task) = shop.busy().await;
    server.process.interrupt();
    let ended = server.process.ended().await;
    assert_eq!((ended.code, ended.signal), (Some(130), None), "{ended:?}");
    shop.goes_on(&task).await;
}
