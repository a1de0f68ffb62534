//! A long life takes several runs, and much that is left to do makes no large payload.

use futures::future::join_all;
use harness_engine_temporal::Hands;
use temporalio_client::{UntypedWorkflow, WorkflowDescribeOptions, WorkflowExecutionStatus};

use crate::{
    doings::{ECHO, GATE},
    script::{Step, run, say, wait},
    sizes::Sizes,
    world::{World, until},
};

/// More than fit into one report.
const TIMERS: u32 = 2_000;
/// Events of a run in these tests.
const RUN_EVENTS_MAX: u32 = 60;
const SIGNALS: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_life_is_handed_over_and_nothing_is_lost() {
    let Some(world) = World::memory().await else { return };
    let worker = world
        .process_with("worker", Hands::Worker, |_, options| options.run_events_max = Some(RUN_EVENTS_MAX))
        .await;
    let client = world.client().await;
    let steps = [
        wait("early", 1_500, vec![say("early is over")]),
        wait("late", 6_000, vec![say("late is over")]),
        Step::Rounds(25, ECHO.to_owned(), vec![say("all rounds")]),
    ];
    worker.accept("t", "go", &steps).await;
    let labels: Vec<_> = (0..SIGNALS).map(|number| number.to_string()).collect();
    let (deliverer, logged) = (&worker, &world);
    let signals = labels.iter().map(|label| async move {
        let steps = [run(&format!("of {label}"), ECHO, Vec::new())];
        deliverer.accept("t", label, &steps).await;
        logged.wait_for("t", &format!("completed of {label}")).await;
    });
    join_all(signals).await;
    for line in ["all rounds", "early is over", "late is over"] {
        world.wait_for("t", line).await;
    }
    worker.accept("t", "end", &[Step::Close]).await;
    world.wait_status(&client, "t", WorkflowExecutionStatus::Completed).await;
    let sizes = Sizes::of_all_runs(&world, &client, "t").await;
    assert!(sizes.runs > 3, "{sizes:?}");
    let seen = world.doings.seen();
    assert_eq!(seen.begun.len(), 25 + SIGNALS, "everything ran once: {seen:?}");
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(worker.drain().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_that_outlives_many_events_holds_the_next_ones_up_and_no_longer() {
    let Some(world) = World::memory().await else { return };
    let worker = world
        .process_with("worker", Hands::Worker, |_, options| options.run_events_max = Some(RUN_EVENTS_MAX))
        .await;
    let client = world.client().await;
    let handle = client.get_workflow_handle::<UntypedWorkflow>("t");
    let run_id = || async {
        handle.describe(WorkflowDescribeOptions::default()).await.ok().map(|found| found.run_id().to_owned())
    };
    worker.accept("t", "go", &[run("long", GATE, vec![say("long is done")])]).await;
    let before = until("a run", run_id).await;
    worker.accept("t", "rounds", &[Step::Rounds(40, ECHO.to_owned(), vec![say("all rounds")])]).await;
    world.doings.wait("the run is full", |seen| seen.begun.len() > 10).await;
    world.doings.open("long");
    world.wait_for("t", "all rounds").await;
    assert_ne!(until("a run", run_id).await, before);
    worker.accept("t", "end", &[Step::Close]).await;
    world.wait_status(&client, "t", WorkflowExecutionStatus::Completed).await;
    assert!(worker.drain().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_timers_and_activities_makes_no_large_payload() {
    let Some(world) = World::memory().await else { return };
    let worker = world.process("worker", Hands::Worker).await;
    let client = world.client().await;
    // Nobody waits for them here; that they fire is a case of the suite.
    worker.accept("t", "go", &[Step::Timers(TIMERS, 3_600_000)]).await;
    let crowd: Vec<_> = (0..250)
        .map(|number| run(&format!("a rather long name of an activity, number {number}"), ECHO, Vec::new()))
        .collect();
    worker.accept("t", "crowd", &crowd).await;
    world.doings.wait("all have begun", |seen| seen.begun.len() == crowd.len()).await;
    worker.accept("t", "end", &[Step::Close]).await;
    world.wait_status(&client, "t", WorkflowExecutionStatus::Completed).await;
    let sizes = Sizes::of_all_runs(&world, &client, "t").await;
    assert!(sizes.largest_payload <= 32 * 1024, "{sizes:?}");
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(worker.drain().await);
}
