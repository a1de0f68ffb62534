//! Nothing that anybody sends to Temporal stops a workflow.

use harness_engine_temporal::Hands;
use temporalio_client::{UntypedWorkflow, WorkflowDescribeOptions, WorkflowExecutionStatus};

use crate::{
    doings::{ECHO, GATE},
    script::{Step, run, say},
    world::{Process, QUEUE, World, in_time, until},
};

/// A world with a task that runs an activity, which waits for its gate.
async fn busy() -> Option<(World, Process)> {
    let world = World::memory().await?;
    let worker = world.process("worker", Hands::Worker).await;
    worker.accept("t", "go", &[run("a", GATE, vec![run("b", ECHO, vec![say("done"), Step::Close])])]).await;
    world.doings.wait_begun("a", 1).await;
    Some((world, worker))
}

/// The task goes on to its end as if nothing had happened.
async fn ends_well(world: &World, worker: Process) {
    world.doings.open("a");
    let client = world.client().await;
    world.wait_for("t", "done").await;
    world.wait_status(&client, "t", WorkflowExecutionStatus::Completed).await;
    let expected = ["started", "signal go", "completed a", "completed b", "done"];
    assert_eq!(world.transcript("t").await, expected);
    let health = worker.engine.health().await.unwrap();
    assert_eq!(health.workflow_task_failures, 0, "{health:?}");
    assert!(worker.drain().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_of_any_name_and_payload_are_taken() {
    let Some((world, worker)) = busy().await else { return };
    let huge = format!("\"{}\"", "x".repeat(100_000));
    let long = format!(r#"{{"form":1,"seq":0,"activities":"{}"}}"#, "x".repeat(1_000));
    let payloads: [&[&str]; 9] = [
        &[],
        &["--input", "null"],
        &["--input", "{}"],
        &["--input", r#"{"seq":99,"closed":true}"#],
        &["--input", r#"[1,"two",{"three":3}]"#],
        &["--input", "1", "--input", "2"],
        &["--input-base64", "--input", "/wD+AA==", "--input-meta", "encoding=binary/plain"],
        &["--input", &huge],
        &["--input", &long],
    ];
    for name in ["wake", "nobody knows this", "monitor"] {
        for payload in payloads {
            let mut arguments = vec!["workflow", "signal", "--workflow-id", "t", "--name", name];
            arguments.extend(payload);
            world.server.command(&arguments).await;
        }
    }
    assert_eq!(world.doings.seen().times("a"), 1, "nothing was begun again");
    ends_well(&world, worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_and_updates_of_unknown_names_are_refused() {
    let Some((world, worker)) = busy().await else { return };
    let monitor = ["workflow", "query", "--workflow-id", "t", "--name", "monitor"];
    let answer = world.server.command(&monitor).await;
    assert!(answer.contains("\"a\"") || answer.contains(r#"id\":\"a\"#), "{answer}");
    let garbage =
        ["workflow", "query", "--workflow-id", "t", "--name", "monitor", "--input", r#"{"what":[]}"#];
    world.server.command(&garbage).await;
    for arguments in [
        ["workflow", "query", "--workflow-id", "t", "--name", "nobody knows this"],
        ["workflow", "update", "execute", "--workflow-id", "t", "--name=nobody knows this"],
    ] {
        world.refused(&arguments).await;
    }
    ends_well(&world, worker).await;
    // The workflow is brought back from its history to answer.
    let next = world.process("next", Hands::Worker).await;
    let answer = world.server.command(&monitor).await;
    assert!(answer.contains("closed"), "{answer}");
    assert_eq!(next.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(next.drain().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_by_hand_do_what_the_store_says() {
    let Some((world, worker)) = busy().await else { return };
    let client = world.client().await;
    for (id, input) in [
        ("unknown", r#"{"form":"garbage"}"#),
        ("unknown without a word", "null"),
        ("unknown with a report", r#"{"form":1,"seq":7}"#),
    ] {
        let start = ["workflow", "start", "--task-queue", QUEUE, "--type", "TaskWorkflow"];
        world.server.command(&[&start[..], &["--workflow-id", id, "--input", input]].concat()).await;
        if id == "unknown with a report" {
            // It believes what it is told, until it is asked to look.
            world.server.command(&["workflow", "signal", "--workflow-id", id, "--name", "wake"]).await;
        }
        world.wait_status(&client, id, WorkflowExecutionStatus::Completed).await;
    }
    ends_well(&world, worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_in_temporal_cancels_nothing() {
    let Some((world, worker)) = busy().await else { return };
    world.server.command(&["workflow", "cancel", "--workflow-id", "t"]).await;
    // Whatever it would do, it has done before it answers.
    world.server.command(&["workflow", "query", "--workflow-id", "t", "--name", "monitor"]).await;
    assert!(world.doings.seen().stopped.is_empty());
    ends_well(&world, worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_terminate_the_next_delivery_begins_anew() {
    let Some(world) = World::memory().await else { return };
    let worker = world
        .process_with("worker", Hands::Worker, |_, options| {
            options.audit_interval = std::time::Duration::from_secs(3_600);
        })
        .await;
    worker.accept("t", "go", &[run("a", GATE, vec![say("done")])]).await;
    world.doings.wait_begun("a", 1).await;
    world.server.command(&["workflow", "terminate", "--workflow-id", "t"]).await;
    worker.accept("t", "more", &[run("b", ECHO, Vec::new())]).await;
    world.doings.wait_begun("a", 2).await;
    world.doings.open("a");
    world.wait_for("t", "done").await;
    world.wait_for("t", "completed b").await;
    let transcript = world.transcript("t").await;
    assert_eq!(transcript.iter().filter(|line| *line == "completed a").count(), 1, "{transcript:?}");
    worker.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_terminate_a_look_begins_anew() {
    let Some((world, worker)) = busy().await else { return };
    world.server.command(&["workflow", "terminate", "--workflow-id", "t"]).await;
    world.doings.wait_begun("a", 2).await;
    ends_well(&world, worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_repeats_nothing_that_is_recorded() {
    let Some((world, worker)) = busy().await else { return };
    worker.accept("t", "more", &[run("c", ECHO, Vec::new())]).await;
    world.wait_for("t", "completed c").await;
    let client = world.client().await;
    let handle = client.get_workflow_handle::<UntypedWorkflow>("t");
    let run_id = || async {
        let described = handle.describe(WorkflowDescribeOptions::default()).await.unwrap();
        described.run_id().to_owned()
    };
    let before = run_id().await;
    let reset =
        ["workflow", "reset", "--workflow-id", "t", "--type", "FirstWorkflowTask", "--reason", "a test"];
    world.server.command(&reset).await;
    until("another run", || async { (run_id().await != before).then_some(()) }).await;
    world.doings.open("a");
    in_time("the end", world.wait_for("t", "done")).await;
    world.wait_status(&client, "t", WorkflowExecutionStatus::Completed).await;
    let seen = world.doings.seen();
    assert_eq!((seen.times("b"), seen.times("c")), (1, 1), "{seen:?}");
    let lines = ["started", "signal go", "signal more", "completed c", "completed a", "completed b", "done"];
    assert_eq!(world.transcript("t").await, lines);
    assert_eq!(worker.engine.health().await.unwrap().workflow_task_failures, 0);
    assert!(worker.drain().await);
}
