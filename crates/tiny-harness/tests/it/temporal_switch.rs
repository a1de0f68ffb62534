//! One store, now on the local engine, now on Temporal: tasks go on where they were.

use std::{fs, path::PathBuf};

use harness_testkit::temporal_binary;
use serde_json::{Value, json};

use crate::{
    api::{message, reply, state, words},
    rig::{Rig, Server, tiny_harness, until},
};

/// Looks an order up and ships a replacement; says back everything else.
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

[[turns]]
text = "You said: {{message_text}}"
"#;

/// Two configurations of one agent, on one store.
struct Shop {
    rig: Rig,
    slow: PathBuf,
    local: PathBuf,
    temporal: PathBuf,
}

impl Shop {
    fn new() -> Option<Self> {
        let binary = temporal_binary()?;
        let args = json!(["mcp-demo", "orders", "--data", "${PLUGIN_DATA}"]);
        let servers = json!({"orders": {"type": "stdio", "command": "tiny-harness", "args": args}});
        let rig = Rig::new(SCRIPT).conversations().plugin("shop", &servers);
        let rig = rig.tables("[heartbeat]\ninterval = \"PT1S\"\n");
        let data = rig.path("plugin-data/shop");
        fs::create_dir_all(&data).unwrap();
        let slow = data.join("slow-get-order");
        fs::write(&slow, "").unwrap();
        let local = rig.config();
        let temporal = rig.path("temporal.toml");
        let tables =
            format!("[temporal]\nmode = \"embedded\"\n[temporal.embedded]\nbinary_path = {binary:?}\n");
        fs::write(&temporal, format!("{}\n{tables}", fs::read_to_string(&local).unwrap())).unwrap();
        Some(Self { rig, slow, local, temporal })
    }

    /// Tools that were called, in order.
    fn deeds(&self) -> Vec<String> {
        let ledger =
            fs::read_to_string(self.rig.path("plugin-data/shop/orders-ledger.jsonl")).unwrap_or_default();
        let tool = |line: &str| {
            let entry: Value = serde_json::from_str(line).unwrap();
            entry["tool"].as_str().unwrap().to_owned()
        };
        ledger.lines().map(tool).collect()
    }

    async fn looked_up(&self, times: usize) {
        until("the look-up is at work", async || {
            self.deeds().iter().filter(|deed| *deed == "get_order").count() >= times
        })
        .await;
    }
}

/// Goes on with a parked task, whichever engine runs.
async fn goes_on(server: &Server, parked: &Value, id: &str) {
    let answered = server.ada().send(reply(id, id, parked)).await;
    assert_eq!((state(&answered), words(&answered)), ("INPUT_REQUIRED", format!("You said: {id}").as_str()));
}

#[tokio::test]
async fn a_store_moves_to_temporal_and_back_with_tasks_at_work() {
    let Some(shop) = Shop::new() else { return };
    let server = Server::start(&shop.local, []).await;
    let parked = server.ada().send(message("m-1", "hello")).await;
    assert_eq!(state(&parked), "INPUT_REQUIRED");
    let busy = server.ada().send_off(message("m-2", "order 48213 is broken")).await;
    let id = busy["id"].as_str().unwrap();
    shop.looked_up(1).await;
    server.kill().await;

    // The look-up may be repeated: it begins again here.
    let server = Server::start(&shop.temporal, []).await;
    shop.looked_up(2).await;
    goes_on(&server, &parked, "on Temporal").await;
    assert_eq!(state(&server.ada().task(id).await), "WORKING");
    let monitor = format!("{}/_monitor", server.url);
    until("the schedule ticks", async || {
        let picture: Value = crate::api::http().get(&monitor).send().await.unwrap().json().await.unwrap();
        picture["engine"]["kind"] == "temporal" && picture["engine"]["workflow_task_failures"] == 0
    })
    .await;
    server.kill().await;

    // In order, with the look-up at work.
    let server = Server::start(&shop.local, []).await;
    shop.looked_up(3).await;
    goes_on(&server, &parked, "back").await;
    assert_eq!(server.stop().await.code, Some(0));
    let server = Server::start(&shop.temporal, []).await;
    fs::remove_file(&shop.slow).unwrap();
    let done = server.ada().task_in(id, "INPUT_REQUIRED").await;
    assert_eq!(words(&done), "It is on its way.");
    let effects = shop.deeds().iter().filter(|deed| *deed == "ship_replacement").count();
    assert_eq!(effects, 1, "{:?}", shop.deeds());
    assert_eq!(server.stop().await.code, Some(0));

    let temporal = shop.temporal.display().to_string();
    let schedules = || tiny_harness(["schedules", "delete", "--config", &temporal]).run();
    let deleted = schedules().await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    let again = schedules().await;
    assert_eq!((again.code, again.stderr.as_str()), (Some(1), "error: there is no heartbeat schedule\n"));
    let purged = tiny_harness(["tasks", "purge", "--config", &temporal, id]).run().await;
    assert_eq!((purged.code, purged.stderr.as_str()), (Some(0), ""), "{purged:?}");
    let server = Server::start(&shop.local, []).await;
    assert_eq!(server.ada().refused("GetTask", json!({"id": id})).await.reason, "TASK_NOT_FOUND");
    goes_on(&server, &parked, "the last time").await;
    server.kill().await;
}

#[tokio::test]
async fn schedules_are_of_agents_on_temporal_that_keep_something() {
    let rig = Rig::new("[[turns]]\ntext = \"Hi.\"\n");
    let local = rig.config();
    let run = async |config: &std::path::Path| {
        let config = config.display().to_string();
        tiny_harness(["schedules", "delete", "--config", &config]).run().await
    };
    let refused = run(&local).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("the local engine has no schedule"), "{refused:?}");

    let write = |tables: &str| {
        let file = rig.path("temporal.toml");
        fs::write(&file, format!("{}\n{tables}", fs::read_to_string(&local).unwrap())).unwrap();
        file
    };
    let in_memory = write("[temporal]\nmode = \"embedded\"\n[temporal.embedded]\npersist = false\n");
    let refused = run(&in_memory).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("(temporal.embedded.persist)"), "{refused:?}");
    let never_ran = run(&write("[temporal]\nmode = \"embedded\"\n")).await;
    assert_eq!(
        (never_ran.code, never_ran.stderr.as_str()),
        (Some(1), "error: there is no heartbeat schedule\n")
    );
    assert!(!rig.path("temporal.sqlite3").exists(), "nothing is begun to find that out");

    let Some(binary) = temporal_binary() else { return };
    let kept = format!("[temporal]\nmode = \"embedded\"\n[temporal.embedded]\nbinary_path = {binary:?}\n");
    let kept = write(&kept);
    let server = Server::start(&kept, []).await;
    let owned = run(&kept).await;
    assert_eq!(owned.code, Some(1), "{owned:?}");
    assert!(
        owned.stderr.contains("in use by another tiny-harness process; stop that process first"),
        "{owned:?}"
    );
    server.kill().await;
}
