//! What goes wrong in Temporal can be seen.

use std::time::Duration;

use harness_engine_temporal::{ConnectError, Hands, Poller, WorkerState, inspect};
use harness_model::WorkflowId;
use harness_ports::Engine;
use harness_temporal_server::State;
use harness_testkit::{MemoryStore, TemporalServer};

use crate::{
    doings::{ECHO, GATE},
    script::{order, run},
    world::{QUEUE, World, until},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_that_fails_its_tasks_is_counted_and_named() {
    let Some(world) = World::memory().await else { return };
    let worker = world.process("the worker", Hands::Worker).await;
    worker.accept("t", "go", &[run("a", GATE, Vec::new())]).await;
    world.doings.wait_begun("a", 1).await;
    let address = world.address("a look");
    let found = until("the worker asks for work", || async {
        let found = inspect(&address, QUEUE).await.unwrap();
        let poller = Poller { identity: "the worker".to_owned(), workflows: true, activities: true };
        (found.workers == [poller]).then_some(found)
    })
    .await;
    assert!(found.namespace_exists && !found.search_attributes, "{found:?}");
    assert!(!found.server_version.is_empty(), "{found:?}");
    assert_eq!((found.open_workflows, found.looked_at, found.stuck.len()), (1, 1, 0), "{found:?}");
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);

    // A workflow of another build, of which this worker knows nothing.
    let start = ["workflow", "start", "--task-queue", QUEUE, "--type", "OfAnotherBuild"];
    world.server.command(&[&start[..], &["--workflow-id", "foreign"]].concat()).await;
    until("the failures are counted", || async {
        (worker.engine.health().await.unwrap().workflow_task_failures > 0).then_some(())
    })
    .await;
    let found = until("the workflow is named", || async {
        let found = inspect(&address, QUEUE).await.unwrap();
        (!found.stuck.is_empty()).then_some(found)
    })
    .await;
    assert_eq!(found.stuck[0].workflow_id, "foreign", "{found:?}");
    assert!(found.stuck[0].attempt > 1, "{found:?}");
    worker.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_server_and_a_missing_namespace_are_told_apart() {
    let Some(world) = World::memory().await else { return };
    let mut address = world.address("a look");
    address.namespace = "nobody-made-it".to_owned();
    let found = inspect(&address, QUEUE).await.unwrap();
    assert!(!found.namespace_exists && found.workers.is_empty(), "{found:?}");
    let address = world.address("a look");
    world.server.stop().await;
    let error = inspect(&address, QUEUE).await.unwrap_err();
    let unreachable = harness_engine_temporal::AdminError::Connect(ConnectError::Unreachable {
        target: address.target.clone(),
        reason: String::new(),
    });
    assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&unreachable), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_tells_of_wake_ups_workers_and_broken_workflows() {
    let Some(world) = World::memory().await else { return };
    let front = world.process("front", Hands::None).await;
    let worker = world.process("worker", Hands::Worker).await;
    let calm = until("nothing is pending", || async {
        let health = front.engine.health().await.unwrap();
        (health.pending_wakes == 0).then_some(health)
    })
    .await;
    assert_eq!((calm.worker, calm.failed_wakes, calm.set_aside), (WorkerState::None, 0, 0), "{calm:?}");
    assert_eq!(worker.engine.health().await.unwrap().worker, WorkerState::Running);

    // A task of another build, which only this process has.
    let without = world.process_with("without", Hands::None, |parts, _| parts.workflows.clear()).await;
    front.accept("t", "go", &[]).await;
    let refused = harness_ports::Engine::deliver(&*without.engine, order("t", "more", None, &[])).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(without.engine.health().await.unwrap().set_aside, 1);

    let engine = std::sync::Arc::clone(&worker.engine);
    assert!(worker.drain().await);
    assert_eq!(engine.health().await.unwrap().worker, WorkerState::Ended);

    world.server.stop().await;
    let delivery = order("u", "go", None, &[run("a", ECHO, Vec::new())]);
    assert_eq!(delivery.workflow_id, WorkflowId::new("u"));
    harness_ports::Engine::deliver(&*front.engine, delivery).await.unwrap();
    let troubled = async {
        loop {
            let health = front.engine.health().await.unwrap();
            if health.pending_wakes == 1 && health.failed_wakes > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    crate::world::in_time("the trouble is told", troubled).await;
    front.kill().await;
    without.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_an_outage_until_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let state = || State::File(directory.path().join("temporal.sqlite3"));
    let Some(server) = TemporalServer::start_with(|options| options.state = state()).await else { return };
    let port = server.address().port();
    let world = World::over(server, MemoryStore::new(), None);
    let process = world.process("a server", Hands::None).await;
    assert_eq!(process.engine.outage(), None);
    let World { server, .. } = world;
    server.stop().await;
    let outage = until("the outage is noticed", || async { process.engine.outage() }).await;
    assert!(outage.starts_with("Temporal has not answered for "), "{outage}");
    let server = TemporalServer::start_with(|options| {
        options.state = state();
        options.port = Some(port);
    });
    let server = server.await.unwrap();
    until("it answers again", || async { process.engine.outage().is_none().then_some(()) }).await;
    process.kill().await;
    server.stop().await;
}
