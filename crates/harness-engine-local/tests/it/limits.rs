//! What only this engine promises: its own limits.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use harness_engine_local::EngineOptions;
use harness_model::WorkflowId;
use harness_ports::{
    ActivityContext, ActivityFailure, ActivityHost, ActivityOptions, ActivityTask, Admission, Command,
    Delivered, Delivery, EventKind, HistoryEvent, IllegalEvent, OnCrash, RestoreError, Signal, StartWorkflow,
    Workflow, WorkflowDefinition,
    conformance::engine::{EngineLife, LifePlan, Trouble},
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    lab::{LocalLab, LocalLife, usual},
    memory::MemoryHome,
};

/// Starts as many activities as its start says; takes every signal, and cancels the first activity at one of them.
struct Burst;

const CANCEL: &str = "cancel.v1";

impl WorkflowDefinition for Burst {
    fn workflow_type(&self) -> &'static str {
        "burst.v1"
    }

    fn create(&self) -> Box<dyn Workflow> {
        Box::new(Self)
    }

    fn restore(&self, _snapshot: &[u8]) -> Result<Box<dyn Workflow>, RestoreError> {
        Ok(self.create())
    }
}

impl Workflow for Burst {
    fn apply(&mut self, event: &HistoryEvent) -> Result<Vec<Command>, IllegalEvent> {
        if matches!(&event.kind, EventKind::Signaled(signal) if signal.name == CANCEL) {
            return Ok(vec![Command::CancelActivity("0".into())]);
        }
        let EventKind::Started { input } = &event.kind else { return Ok(Vec::new()) };
        let task = |number: u64| {
            Command::ScheduleActivity(ActivityTask {
                activity_id: number.to_string().into(),
                name: "wait.v1".to_owned(),
                input: Value::Null,
                options: ActivityOptions {
                    start_to_close: Duration::from_secs(60),
                    on_crash: OnCrash::Rerun,
                },
                trace: None,
            })
        };
        Ok((0..input.as_u64().unwrap_or_default()).map(task).collect())
    }

    fn admits(&self, _signal: &Signal) -> Admission {
        Admission::Accept
    }

    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Tells when an activity begins, and ends it when it is allowed to, not when it is asked to.
struct Turnstile {
    begun: mpsc::Sender<String>,
    may_end: Arc<Semaphore>,
}

impl ActivityHost for Turnstile {
    fn run(
        &self,
        task: ActivityTask,
        _context: ActivityContext,
    ) -> BoxFuture<'static, Result<Value, ActivityFailure>> {
        let (begun, may_end) = (self.begun.clone(), Arc::clone(&self.may_end));
        Box::pin(async move {
            begun.send(task.activity_id.to_string()).await.map_err(|_| ActivityFailure::canceled())?;
            may_end.acquire().await.map_err(|_| ActivityFailure::canceled())?.forget();
            Ok(Value::Null)
        })
    }
}

struct Scene {
    life: LocalLife,
    begun: mpsc::Receiver<String>,
    may_end: Arc<Semaphore>,
}

impl Scene {
    async fn open(options: EngineOptions) -> Self {
        let (sender, begun) = mpsc::channel(64);
        let may_end = Arc::new(Semaphore::new(0));
        let activities = Arc::new(Turnstile { begun: sender, may_end: Arc::clone(&may_end) });
        let lab = LocalLab::new(MemoryHome::default(), options);
        let plan = LifePlan { activities, workflows: vec![Arc::new(Burst)], trouble: Trouble::None };
        Self { life: lab.start(plan).await, begun, may_end }
    }

    async fn deliver(&self, activities: u64, signal: Option<Signal>) -> Delivered {
        let delivery = Delivery {
            workflow_id: WorkflowId::new("w"),
            start: Some(StartWorkflow { workflow_type: "burst.v1".to_owned(), input: json!(activities) }),
            signal,
            blocks: Vec::new(),
        };
        self.life.engine().deliver(delivery).await.unwrap()
    }
}

fn signal(name: &str, key: Option<&str>) -> Option<Signal> {
    Some(Signal {
        name: name.to_owned(),
        payload: Value::Null,
        dedupe_key: key.map(str::to_owned),
        trace: None,
    })
}

#[tokio::test]
async fn activities_beyond_the_limit_wait_in_order() {
    let mut scene = Scene::open(EngineOptions { activities_running_max: 2, ..usual() }).await;
    scene.deliver(5, None).await;
    let mut order = vec![scene.begun.recv().await.unwrap(), scene.begun.recv().await.unwrap()];
    for _ in 0..3 {
        assert!(scene.begun.try_recv().is_err(), "a third one runs: {order:?}");
        scene.may_end.add_permits(1);
        order.push(scene.begun.recv().await.unwrap());
    }
    assert_eq!(order, ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_long_journal_is_cut_short_by_a_snapshot() {
    let scene = Scene::open(EngineOptions { snapshot_tail_max: 8, ..usual() }).await;
    for _ in 0..30 {
        scene.deliver(0, signal("more.v1", None)).await;
        let stored = scene.life.store().workflow(&WorkflowId::new("w")).await.unwrap().unwrap();
        assert!(stored.tail.len() < 8, "{}", stored.tail.len());
    }
    let stored = scene.life.store().workflow(&WorkflowId::new("w")).await.unwrap().unwrap();
    assert_eq!(stored.next_seq, 31);
    assert_eq!(stored.snapshot.map(|(seq, _)| seq), Some(24));
}

#[tokio::test]
async fn what_waits_together_is_committed_together() {
    let scene = Scene::open(usual()).await;
    scene.deliver(0, None).await;
    let before = scene.life.commits();
    // On this runtime the actor runs once all of them are queued.
    let keys = ["a", "b", "a", "c", "a", "b"];
    let receipts = join_all(keys.map(|key| scene.deliver(0, signal("more.v1", Some(key))))).await;
    let (accepted, duplicate) = (Delivered::Accepted { cursor: None }, Delivered::Duplicate { cursor: None });
    let expected =
        [&accepted, &accepted, &duplicate, &accepted, &duplicate, &duplicate].map(Delivered::clone);
    assert_eq!(receipts, expected);
    assert_eq!(scene.life.commits(), before + 1);
}

#[tokio::test]
async fn a_canceled_activity_that_does_not_listen_is_dropped() {
    let mut scene = Scene::open(EngineOptions { activities_running_max: 1, ..usual() }).await;
    scene.deliver(2, None).await;
    assert_eq!(scene.begun.recv().await.as_deref(), Some("0"));
    scene.deliver(0, signal(CANCEL, None)).await;
    assert_eq!(scene.begun.recv().await.as_deref(), Some("1"), "its place is free again");
}

#[tokio::test]
async fn a_drain_leaves_no_future_behind() {
    let mut scene = Scene::open(usual()).await;
    scene.deliver(3, None).await;
    for _ in 0..3 {
        scene.begun.recv().await.unwrap();
    }
    assert_eq!(Arc::strong_count(&scene.may_end), 5, "this test, the host, and three activities");
    assert!(!scene.life.drain(Duration::from_millis(1)).await);
    assert_eq!(Arc::strong_count(&scene.may_end), 2);
}
