//! Several processes over one store and one server.

use futures::future::join_all;
use harness_engine_temporal::Hands;
use harness_ports::Delivered;
use harness_temporal_server::State;
use harness_testkit::{MemoryStore, TemporalServer};

use crate::{
    doings::{ECHO, GATE},
    script::{Step, run, run_once, say, wait},
    world::World,
};

const DELIVERIES: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_without_hands_accepts_a_worker_does() {
    for world in [World::memory().await, World::sqlite().await] {
        let Some(world) = world else { return };
        let front = world.process("front", Hands::None).await;
        // Nobody works yet; accepting does not depend on it.
        front
            .accept("t", "go", &[run("a", ECHO, vec![wait("pause", 50, vec![say("done"), Step::Close])])])
            .await;
        assert_eq!(world.transcript("t").await, ["started", "signal go"]);
        let worker = world.process("worker", Hands::Worker).await;
        world.wait_for("t", "done").await;
        let expected = ["started", "signal go", "completed a", "fired pause", "done"];
        assert_eq!(world.transcript("t").await, expected);
        assert_eq!(world.doings.seen().times("a"), 1);
        assert!(front.drain().await && worker.drain().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_deliveries_through_several_processes_keep_the_contract() {
    for world in [World::memory().await, World::sqlite().await] {
        let Some(world) = world else { return };
        let fronts = [
            world.process("front", Hands::None).await,
            world.process("both", Hands::Worker).await,
            world.process("worker", Hands::Worker).await,
        ];
        let numbers: Vec<_> = (0..DELIVERIES).map(|number| (number, number.to_string())).collect();
        // Everyone delivers everything.
        let deliveries = numbers.iter().flat_map(|(_, label)| {
            fronts.iter().map(move |front| async move {
                let steps = [run(&format!("a{label}"), ECHO, Vec::new())];
                (label, front.deliver("t", label, Some(label), &steps).await)
            })
        });
        let receipts = join_all(deliveries).await;
        for (_, label) in &numbers {
            world.wait_for("t", &format!("completed a{label}")).await;
            assert_eq!(world.doings.seen().times(&format!("a{label}")), 1, "{label}");
        }
        let transcript = world.transcript("t").await;
        for (_, label) in &numbers {
            let line = format!("signal {label}");
            let places: Vec<_> = (0_u64..)
                .zip(&transcript)
                .filter(|(_, seen)| **seen == line)
                .map(|(place, _)| place)
                .collect();
            assert_eq!(places.len(), 1, "{label} happened once");
            let mut accepted = 0;
            for receipt in receipts.iter().filter(|(of, _)| *of == label).map(|(_, receipt)| receipt) {
                let (Delivered::Accepted { cursor } | Delivered::Duplicate { cursor }) = receipt else {
                    panic!("{receipt:?}");
                };
                accepted += usize::from(matches!(receipt, Delivered::Accepted { .. }));
                // The first delivery starts the workflow, before which there is no entry.
                let first = transcript.get(1) == Some(&line);
                let before = if first { None } else { places[0].checked_sub(1) };
                assert_eq!(*cursor, before, "the entry before {label}");
            }
            assert_eq!(accepted, 1, "{label} was accepted once");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_of_a_worker_loses_nothing() {
    for world in [World::memory().await, World::sqlite().await] {
        let Some(world) = world else { return };
        let front = world.process("front", Hands::None).await;
        let first = world.process("first", Hands::Worker).await;
        let steps = [
            run("again", GATE, vec![say("again is done")]),
            run_once("once", GATE, vec![say("once is done")]),
            wait("pause", 300, vec![say("pause is done")]),
        ];
        front.accept("t", "go", &steps).await;
        world.doings.wait_begun("again", 1).await;
        world.doings.wait_begun("once", 1).await;
        first.kill().await;
        let second = world.process("second", Hands::Worker).await;
        world.doings.wait_begun("again", 2).await;
        world.doings.open("again");
        world.wait_for("t", "again is done").await;
        world.wait_for("t", "once is done").await;
        world.wait_for("t", "pause is done").await;
        let transcript = world.transcript("t").await;
        let unknown = transcript.iter().filter(|line| *line == "failed once OutcomeUnknown");
        assert_eq!(unknown.count(), 1, "{transcript:?}");
        assert_eq!(transcript.len(), 8, "{transcript:?}");
        assert_eq!(world.doings.seen().times("once"), 1);
        assert!(second.drain().await);
        front.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_through_one_process_reaches_an_execution_on_another() {
    let Some(world) = World::memory().await else { return };
    let front = world.process("front", Hands::None).await;
    let worker = world.process("worker", Hands::Worker).await;
    front.accept("t", "go", &[run("a", GATE, Vec::new())]).await;
    world.doings.wait_begun("a", 1).await;
    front.accept("t", "stop", &[Step::Cancel("a".to_owned()), say("canceled")]).await;
    world.doings.wait("the execution is stopped", |seen| seen.stopped == ["a"]).await;
    assert_eq!(world.transcript("t").await, ["started", "signal go", "signal stop", "canceled"]);
    assert!(worker.drain().await);
    front.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_of_the_server_delays_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("temporal.db");
    let on_disk = TemporalServer::start_with(|options| options.state = State::File(file.clone())).await;
    let Some(server) = on_disk else { return };
    let port = server.address().port();
    let mut world = World::over(server, MemoryStore::new(), None);
    let worker = world.process("worker", Hands::Worker).await;
    worker.accept("t", "go", &[run("a", ECHO, vec![wait("pause", 1_000, vec![say("paused")])])]).await;
    world.wait_for("t", "completed a").await;
    let away = TemporalServer::start().await.unwrap();
    std::mem::replace(&mut world.server, away).stop().await;
    worker.accept("t", "more", &[run("b", ECHO, vec![say("more")])]).await;
    worker.accept("u", "go", &[run("c", ECHO, vec![say("new")])]).await;
    let back = TemporalServer::start_with(|options| {
        options.state = State::File(file.clone());
        options.port = Some(port);
    });
    world.server = back.await.unwrap();
    world.wait_for("t", "more").await;
    world.wait_for("u", "new").await;
    world.wait_for("t", "paused").await;
    assert_eq!(world.doings.seen().times("a"), 1);
    worker.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_that_takes_all_that_temporal_knows_loses_nothing() {
    let Some(mut world) = World::memory().await else { return };
    let port = world.server.address().port();
    let worker = world.process("worker", Hands::Worker).await;
    let steps = [run("a", GATE, vec![say("a is done")]), wait("pause", 500, vec![say("paused")])];
    worker.accept("t", "go", &steps).await;
    world.doings.wait_begun("a", 1).await;
    let away = TemporalServer::start().await.unwrap();
    std::mem::replace(&mut world.server, away).stop().await;
    world.server = TemporalServer::start_with(|options| options.port = Some(port)).await.unwrap();
    // Found out by a look, without a restart of the process.
    world.doings.open("a");
    world.wait_for("t", "a is done").await;
    world.wait_for("t", "paused").await;
    worker.kill().await;
}
