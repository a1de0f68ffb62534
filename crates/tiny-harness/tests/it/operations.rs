//! What operators do and see: purge, retention, `/_monitor` and `/readyz` of a real server.

use std::path::Path;

use harness_testkit::Ended;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    api::{chunk, http, message, reply, state},
    rig::{Rig, Server, tiny_harness, until},
    stored,
};

const SCRIPT: &str = r#"
[[turns]]
when = { text_equals = "think long" }
chunks = ["Let me see. ", { text = "And so on.", delay_ms = 600000 }]

[[turns]]
chunks = ["You said: ", "{{message_text}}"]
"#;

/// Everything that belongs to tasks.
const TABLES: [&str; 13] = [
    "tasks",
    "task_index",
    "log",
    "history",
    "publish_keys",
    "workflows",
    "journal",
    "snapshots",
    "deliveries",
    "activities",
    "timers",
    "blocks",
    "block_owners",
];

async fn purge(rig: &Rig, args: &[&str]) -> Ended {
    let config = rig.config().display().to_string();
    tiny_harness(["tasks", "purge", "--config", &config]).args(args).run().await
}

/// Rows of the tables of tasks, and records of tasks; those that have any.
fn rows(store: &Path) -> Vec<(String, u32)> {
    let (_folder, connection) = stored::copy(store);
    let count = |sql: &str| connection.query_row(sql, (), |row| row.get(0)).unwrap();
    let mut rows: Vec<(String, u32)> =
        TABLES.map(|table| (table.to_owned(), count(&format!("SELECT count(*) FROM {table}")))).into();
    let records = "SELECT count(*) FROM records WHERE kind <> 'monitor'";
    rows.push(("records".to_owned(), count(records)));
    rows.retain(|(_, count)| *count > 0);
    rows
}

/// The counts that a purge prints.
fn counted(ended: &Ended) -> Vec<(String, u32)> {
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let pair = |line: &str| {
        let (kind, rows) = line.split_once("  ").unwrap();
        (kind.to_owned(), rows.trim().parse().unwrap())
    };
    ended.stdout.lines().map(pair).collect()
}

fn count_of(counts: &[(String, u32)], kind: &str) -> u32 {
    counts.iter().find(|(name, _)| name == kind).map_or(0, |(_, rows)| *rows)
}

async fn monitor(server: &Server) -> Value {
    let response = http().get(format!("{}/_monitor", server.url)).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_serving_process_purges_a_task_that_is_at_work() {
    let rig = Rig::new(SCRIPT).conversations();
    let server = rig.serve().await;
    let ada = server.ada();
    let parked = ada.send(message("m-1", "hello")).await;
    let before = ada.send_off(message("m-2", "think long")).await;
    let id = before["id"].as_str().unwrap();
    let mut watching = ada.subscribe(id, Some(0)).await;
    until("the model speaks", async || {
        watching.next().await.is_some_and(|(_, event)| chunk(&event).is_some())
    })
    .await;

    let counts = counted(&purge(&rig, &["--url", &server.url, id]).await);
    for kind in [
        "tasks",
        "workflows",
        "events",
        "deliveries",
        "log_entries",
        "history_entries",
        "inbox_audit",
        "blocks",
    ] {
        assert!(count_of(&counts, kind) > 0, "{kind}: {counts:?}");
    }
    assert!(
        watching.rest().await.iter().all(|(_, event)| chunk(event).is_none()),
        "the model is not heard any more"
    );
    assert_eq!(ada.refused("GetTask", json!({"id": id})).await.reason, "TASK_NOT_FOUND");
    assert_eq!(ada.task(parked["id"].as_str().unwrap()).await, parked, "the other task is as it was");
    let nothing = purge(&rig, &["--url", &server.url, id]).await;
    assert_eq!((nothing.code, nothing.stdout), (Some(0), format!("there is nothing of task {id}\n")));

    // The conversation goes on, and so does a new one that begins with the purged message.
    assert_eq!(state(&ada.send(reply("m-3", "still there?", &parked)).await), "INPUT_REQUIRED");
    assert_eq!(ada.send_off(message("m-2", "think long")).await["id"], before["id"]);
    for task in [parked["id"].as_str().unwrap(), id] {
        counted(&purge(&rig, &["--url", &server.url, task]).await);
    }
    assert_eq!(rows(&rig.store()), [], "nothing of any task is left");
    let ended = server.stop().await;
    assert!(!ended.stderr.contains("set aside"), "{ended:?}");
    assert_eq!(rows(&rig.store()), [], "nothing came back");
}

#[tokio::test]
async fn a_store_that_nobody_uses_is_purged_in_place() {
    let rig = Rig::new(SCRIPT).conversations();
    let missing = purge(&rig, &["t"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.contains("there is no store at"), "{missing:?}");
    let server = rig.serve().await;
    let task = server.ada().send(message("m-1", "hello")).await;
    let id = task["id"].as_str().unwrap();
    // The address of the server is not the configured one, because it chose its port itself.
    let lost = purge(&rig, &[id]).await;
    assert_eq!((lost.code, lost.stdout.as_str()), (Some(1), ""), "{lost:?}");
    assert!(lost.stderr.contains("has the store open") && lost.stderr.contains("--url"), "{lost:?}");
    server.stop().await;
    let counts = counted(&purge(&rig, &[id]).await);
    assert_eq!((count_of(&counts, "tasks"), count_of(&counts, "workflows")), (1, 1));
    assert_eq!(rows(&rig.store()), []);
    let nothing = purge(&rig, &[id]).await;
    assert_eq!((nothing.code, nothing.stdout), (Some(0), format!("there is nothing of task {id}\n")));
}

#[tokio::test]
async fn the_monitor_shows_the_tasks_of_the_last_tick() {
    let rig = Rig::new(SCRIPT).conversations().tables("[heartbeat]\ninterval = \"PT1S\"\n");
    let server = rig.serve().await;
    let ready = http().get(format!("{}/readyz", server.url)).send().await.unwrap();
    assert_eq!((ready.status().as_u16(), ready.text().await.unwrap()), (200, "ok\n".to_owned()));
    let parked = server.ada().send(message("m-1", "a secret wish")).await;
    let working = server.ada().send_off(message("m-2", "think long")).await;
    until("both tasks are in the picture", async || {
        let seen = monitor(&server).await;
        seen["tasks"].as_array().is_some_and(|tasks| tasks.len() == 2)
            && seen["tasks"][0]["phase"] == "modeling"
    })
    .await;
    let seen = monitor(&server).await;
    assert_eq!((&seen["tasks"][0]["task_id"], &seen["tasks"][1]["task_id"]), (&working["id"], &parked["id"]));
    let row = &seen["tasks"][1];
    assert_eq!((&row["turn"], &row["mailbox"], &row["phase"]), (&json!(1), &json!(0), &json!("waiting")));
    assert_eq!(row["sub_state"], "awaiting-next-message");
    assert_eq!(seen["counts"]["tasks"], json!({"WORKING": 1, "INPUT_REQUIRED": 1}));
    assert_eq!((&seen["counts"]["activities"], &seen["counts"]["outbox"]), (&json!(1), &json!(0)));
    assert!(seen["process"]["pid"].as_u64().is_some_and(|pid| pid > 1), "{seen}");
    assert!(["secret", "said", "\"ada\""].iter().all(|words| !seen.to_string().contains(words)), "{seen}");
    // What the last process saw is there for the next one, until that one has ticked.
    server.kill().await;
    let after = rig.serve().await;
    assert_eq!(monitor(&after).await["tasks"].as_array().unwrap().len(), 2);
}

/// A task that ended a year ago goes with the next tick; one that ended today stays, and so does one that waits.
#[tokio::test]
async fn tasks_past_their_retention_go() {
    let rig = Rig::new(SCRIPT).tables("[heartbeat]\ninterval = \"PT1S\"\n[retention]\ntasks = \"P30D\"\n");
    let server = rig.serve().await;
    let old = server.ada().send(message("m-1", "hello")).await;
    let young = server.ada().send(message("m-2", "hello")).await;
    server.stop().await;
    let old = old["id"].as_str().unwrap();
    let year = 365 * 86_400_000_i64;
    let connection = Connection::open(rig.store()).unwrap();
    for table in ["tasks", "task_index"] {
        let sql = format!("UPDATE {table} SET status_at = status_at - {year} WHERE task_id = ?1");
        assert!(connection.execute(&sql, [old]).unwrap() > 0);
    }
    drop(connection);
    let server = rig.serve().await;
    until("the old task is gone", async || server.ada().call("GetTask", json!({"id": old})).await.is_err())
        .await;
    assert_eq!(server.ada().task(young["id"].as_str().unwrap()).await, young);
    let logged = server.logged("deleted what is past its retention");
    assert!(logged[0]["rows"].as_str().unwrap().contains("tasks=1"), "{logged:?}");
}
