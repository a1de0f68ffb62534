//! Tasks are found in Temporal by what they are.

use harness_engine_temporal::{Hands, ensure_search_attributes, inspect};
use harness_model::TaskState;

use crate::{
    doings::{ECHO, GATE},
    script::{Step, run},
    world::{QUEUE, World, until},
};

fn of_this_agent(options: &mut harness_engine_temporal::EngineOptions) {
    options.search_attributes_of = Some("scribe".to_owned());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_listed_by_context_state_and_agent() {
    let Some(world) = World::memory().await else { return };
    let address = world.address("operator");
    ensure_search_attributes(&address).await.unwrap();
    ensure_search_attributes(&address).await.unwrap();
    assert!(inspect(&address, QUEUE).await.unwrap().search_attributes);
    let worker = world.process_with("worker", Hands::Worker, |_, options| of_this_agent(options)).await;
    let asks = Step::State(TaskState::InputRequired);
    worker.accept("t", "go", &[run("a", GATE, vec![asks, run("b", GATE, vec![Step::Close])])]).await;
    let listed = async |query: &str| {
        until(query, || async {
            let listed = world.server.command(&["workflow", "list", "--query", query]).await;
            listed.contains("TaskWorkflow").then_some(())
        })
        .await;
    };
    listed("A2ATaskState = 'TASK_STATE_WORKING' AND TinyHarnessAgent = 'scribe'").await;
    world.doings.open("a");
    listed("A2ATaskState = 'TASK_STATE_INPUT_REQUIRED' AND A2AContextId = 'context of t'").await;
    world.doings.open("b");
    listed("A2ATaskState = 'TASK_STATE_COMPLETED' AND ExecutionStatus = 'Completed'").await;
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(worker.drain().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_that_are_not_registered_stop_nothing() {
    let Some(world) = World::memory().await else { return };
    let worker = world.process_with("worker", Hands::Worker, |_, options| of_this_agent(options)).await;
    worker.accept("t", "go", &[run("a", ECHO, vec![Step::Close])]).await;
    world.wait_for("t", "completed a").await;
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(worker.drain().await);
}
