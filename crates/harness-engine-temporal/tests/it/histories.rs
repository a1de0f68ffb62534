//! What the history of a Temporal workflow takes; and the lives whose histories are kept, to be replayed by later builds.
//!
//! `UPDATE=1 cargo test -p harness-engine-temporal --test it histories` plays the lives below against a real server and
//! writes the histories that are not there yet into `tests/histories`. One that is there stays as it is when the engine
//! changes: it is what an earlier build left behind. Write a new life instead.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use harness_engine_temporal::{Hands, ensure_search_attributes};
use harness_model::TaskState;
use temporalio_client::{Client, WorkflowExecutionStatus, WorkflowHistory};
use temporalio_common::protos::temporal::api::history::v1::History;

use crate::{
    doings::{ECHO, GATE, PAGE},
    script::{Step, run, run_once, say, wait},
    sizes::{Sizes, runs},
    world::World,
};

const CALLS: u32 = 100;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_and_other_lives_are_kept() {
    if std::env::var_os("UPDATE").is_none() {
        return;
    }
    let Some(world) = World::memory().await else { return };
    let client = world.client().await;
    activities_and_close(&world, &client).await;
    crash_and_loss(&world, &client).await;
    timers(&world, &client).await;
    cancel(&world, &client).await;
    signal_to_another(&world, &client).await;
    handed_over(&world, &client).await;
    labelled(&world, &client).await;
}

/// Keeps the last run, and the one before it if there is one.
async fn keep(world: &World, client: &Client, name: &str) {
    world.wait_status(client, name, WorkflowExecutionStatus::Completed).await;
    for (events, suffix) in runs(world, client, name).await.into_iter().zip(["", "-before"]) {
        let history = WorkflowHistory::from(History { events }).to_json().await.unwrap();
        let path = folder().join(format!("{name}{suffix}.json"));
        if !path.exists() {
            fs::create_dir_all(folder()).unwrap();
            fs::write(path, history).unwrap();
        }
    }
}

async fn activities_and_close(world: &World, client: &Client) {
    let worker = world.process("worker", Hands::Worker).await;
    let last = run("c", ECHO, vec![Step::Close]);
    let steps = [run("a", ECHO, Vec::new()), run("b", GATE, vec![last])];
    worker.accept("activities-and-close", "go", &steps).await;
    world.wait_for("activities-and-close", "completed a").await;
    world.doings.open("b");
    keep(world, client, "activities-and-close").await;
    worker.kill().await;
}

async fn crash_and_loss(world: &World, client: &Client) {
    let front = world.process("front", Hands::None).await;
    let first = world.process("first", Hands::Worker).await;
    let steps = [run("again", GATE, vec![say("again is done")]), run_once("once", GATE, Vec::new())];
    front.accept("crash-and-loss", "go", &steps).await;
    world.doings.wait_begun("again", 1).await;
    world.doings.wait_begun("once", 1).await;
    first.kill().await;
    let second = world.process("second", Hands::Worker).await;
    world.doings.wait_begun("again", 2).await;
    world.doings.open("again");
    world.wait_for("crash-and-loss", "again is done").await;
    world.wait_for("crash-and-loss", "failed once OutcomeUnknown").await;
    front.accept("crash-and-loss", "end", &[Step::Close]).await;
    keep(world, client, "crash-and-loss").await;
    second.kill().await;
    front.kill().await;
}

async fn timers(world: &World, client: &Client) {
    let worker = world.process("worker", Hands::Worker).await;
    let steps = [
        wait("far", 3_600_000, Vec::new()),
        wait("near", 50, vec![wait("next", 50, vec![Step::Close])]),
        wait("moved", 3_600_000, Vec::new()),
    ];
    worker.accept("timers", "go", &steps).await;
    worker.accept("timers", "move", &[wait("moved", 20, Vec::new())]).await;
    keep(world, client, "timers").await;
    worker.kill().await;
}

async fn cancel(world: &World, client: &Client) {
    let worker = world.process("worker", Hands::Worker).await;
    worker.accept("cancel", "go", &[run("canceled", GATE, Vec::new())]).await;
    world.doings.wait_begun("canceled", 1).await;
    let instead = run("instead", ECHO, vec![Step::Close]);
    worker.accept("cancel", "stop", &[Step::Cancel("canceled".to_owned()), instead]).await;
    keep(world, client, "cancel").await;
    worker.kill().await;
}

async fn signal_to_another(world: &World, client: &Client) {
    let worker = world.process("worker", Hands::Worker).await;
    let steps = [Step::Tell("another".to_owned()), run("told", ECHO, vec![Step::Close])];
    worker.accept("signal-to-another", "go", &steps).await;
    world.wait_for("another", "signal from another").await;
    keep(world, client, "signal-to-another").await;
    worker.kill().await;
}

async fn handed_over(world: &World, client: &Client) {
    let worker =
        world.process_with("worker", Hands::Worker, |_, options| options.run_events_max = Some(30)).await;
    let rounds = Step::Rounds(15, ECHO.to_owned(), vec![Step::Close]);
    worker.accept("handed-over", "go", &[wait("far", 3_600_000, Vec::new()), rounds]).await;
    keep(world, client, "handed-over").await;
    worker.kill().await;
}

async fn labelled(world: &World, client: &Client) {
    ensure_search_attributes(&world.address("operator")).await.unwrap();
    let agent = Some("scribe".to_owned());
    let worker =
        world.process_with("worker", Hands::Worker, |_, options| options.search_attributes_of = agent).await;
    let asks = Step::State(TaskState::InputRequired);
    worker.accept("labelled", "go", &[run("question", ECHO, vec![asks])]).await;
    world.wait_for("labelled", "completed question").await;
    worker.accept("labelled", "answer", &[Step::Close]).await;
    keep(world, client, "labelled").await;
    worker.kill().await;
}

/// The size of what Temporal keeps does not depend on what a task is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_amid_a_hundred_calls_of_five_kilobytes_and_the_history_is_small() {
    let Some(world) = World::memory().await else { return };
    let client = world.client().await;
    let worker = world.process("worker", Hands::Worker).await;
    let chat = say(&"A long chat that began it all. ".repeat(28_000));
    let calls = Step::Rounds(CALLS, PAGE.to_owned(), vec![Step::Close]);
    worker.accept("t", "go", &[chat, calls]).await;
    world.doings.wait("sixty calls", |seen| seen.begun.len() >= 60).await;
    worker.kill().await;
    let next = world.process("next", Hands::Worker).await;
    world.wait_for("t", &format!("completed {PAGE} 1")).await;
    world.wait_status(&client, "t", WorkflowExecutionStatus::Completed).await;
    let sizes = Sizes::of_all_runs(&world, &client, "t").await;
    println!("{CALLS} calls of 5,000 bytes: {sizes:?}");
    assert!(sizes.history_json < 10_000_000, "{sizes:?}");
    assert!(sizes.largest_payload < 64 * 1024, "{sizes:?}");
    assert!(next.engine.drain(Duration::from_secs(5)).await);
}
