//! The heartbeat of an agent as a schedule of the server.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_engine_temporal::{Hands, Heartbeat, delete_heartbeat};
use tokio::sync::watch;

use crate::world::{World, in_time};

/// Fails the first time.
struct Counter(watch::Sender<u32>);

impl Heartbeat for Counter {
    fn tick(&self) -> BoxFuture<'static, Result<(), String>> {
        self.0.send_modify(|ticks| *ticks += 1);
        let ticks = *self.0.borrow();
        Box::pin(async move { if ticks == 1 { Err("not yet".to_owned()) } else { Ok(()) } })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ticks_on_after_a_failure_until_it_is_deleted() {
    let Some(world) = World::memory().await else { return };
    let counter = Arc::new(Counter(watch::Sender::new(0)));
    let mut ticks = counter.0.subscribe();
    let worker = world
        .process_with("worker", Hands::Worker, |parts, options| {
            parts.heartbeat = Some(counter);
            options.id_prefix = "one-".to_owned();
        })
        .await;
    worker.engine.ensure_heartbeat(Duration::from_secs(1)).await.unwrap();
    worker.engine.ensure_heartbeat(Duration::from_secs(3_600)).await.unwrap();
    in_time("two ticks", ticks.wait_for(|ticks| *ticks >= 2)).await.unwrap();
    let listed = world.server.command(&["schedule", "list"]).await;
    assert!(listed.contains("one-tiny-harness-heartbeat"), "{listed}");
    let address = world.address("operator");
    assert!(!delete_heartbeat(&address, "").await.unwrap(), "of somebody else");
    assert!(delete_heartbeat(&address, "one-").await.unwrap());
    assert!(!delete_heartbeat(&address, "one-").await.unwrap());
    let runs = world.server.command(&["workflow", "list", "--output", "json"]).await;
    assert!(runs.contains("one-tiny-harness-heartbeat-run"), "{runs}");
    assert!(runs.contains("_FAILED"), "the first run failed alone: {runs}");
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(worker.drain().await);
}
