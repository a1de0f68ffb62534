//! Activities that are over in no time take no round trip of their own.

use harness_engine_temporal::Hands;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;

use crate::{
    doings::{ECHO, QUICK},
    script::{Step, run, run_once, say},
    sizes,
    world::World,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quick_activity_that_may_be_repeated_is_not_scheduled() {
    let Some(world) = World::memory().await else { return };
    let process = world.process("one", Hands::Worker).await;
    let end = vec![say("end"), Step::Close];
    let steps = run("quick", QUICK, vec![run("usual", ECHO, vec![run_once("careful", QUICK, end)])]);
    process.accept("w", "go", &[steps]).await;
    world.wait_for("w", "end").await;
    for id in ["quick", "usual", "careful"] {
        assert_eq!(world.doings.seen().times(id), 1, "{id}");
    }

    let client = world.client().await;
    let scheduled: Vec<String> = sizes::runs(&world, &client, "w")
        .await
        .concat()
        .into_iter()
        .filter_map(|event| match event.attributes {
            Some(Attributes::ActivityTaskScheduledEventAttributes(scheduled)) => Some(scheduled.activity_id),
            _ => None,
        })
        .collect();
    assert_eq!(scheduled, ["usual#1", "careful#1"], "what must not be repeated is never quick");
    assert!(process.drain().await);
}
