//! What the engine adds to a turn: a signal, three activities one after another, and a line in the log after each.
//!
//! Over memory the engine itself is measured; over SQLite, with flushes, what a durable turn costs in all.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up cannot run")]

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::{StreamExt, future::BoxFuture, stream};
use harness_engine_local::{EngineOptions, EngineParts, LocalEngine};
use harness_model::{
    Content, ContextId, Lifecycle, StatusChange, TaskEvent, TaskExtension, TaskId, TaskRecord, TaskState,
    Timestamp, WorkflowId,
};
use harness_ports::{
    ActivityContext, ActivityFailure, ActivityHost, ActivityOptions, ActivityTask, Admission, Clock, Command,
    Delivery, Engine, EventKind, HistoryEvent, IdSource, IllegalEvent, OnCrash, Publish, RestoreError,
    Signal, StartWorkflow, Store, Workflow, WorkflowDefinition,
};
use harness_store::{SqliteStore, StoreOptions};
use harness_testkit::MemoryStore;
use serde_json::{Value, json};
use tokio::time::Instant;

const STEPS: u64 = 3;

/// Runs its activities one after another, then closes.
struct Turn {
    task: String,
    steps: u64,
}

struct Turns;

impl WorkflowDefinition for Turns {
    fn workflow_type(&self) -> &'static str {
        "turn.v1"
    }

    fn create(&self) -> Box<dyn Workflow> {
        Box::new(Turn { task: String::new(), steps: 0 })
    }

    fn restore(&self, _snapshot: &[u8]) -> Result<Box<dyn Workflow>, RestoreError> {
        Ok(self.create())
    }
}

impl Workflow for Turn {
    fn apply(&mut self, event: &HistoryEvent) -> Result<Vec<Command>, IllegalEvent> {
        if let EventKind::Started { input } = &event.kind {
            input.as_str().unwrap_or_default().clone_into(&mut self.task);
            return Ok(Vec::new());
        }
        let done = self.steps == STEPS;
        let state = if done { TaskState::Completed } else { TaskState::Working };
        let publish = Command::Publish(Box::new(self.publish(state, event.at)));
        if done {
            return Ok(vec![publish, Command::Close]);
        }
        self.steps += 1;
        Ok(vec![
            publish,
            Command::ScheduleActivity(ActivityTask {
                activity_id: format!("step:{}", self.steps).into(),
                name: "step.v1".to_owned(),
                input: json!({ "task": self.task, "step": self.steps }),
                options: ActivityOptions {
                    start_to_close: Duration::from_secs(60),
                    on_crash: OnCrash::Rerun,
                },
                trace: None,
            }),
        ])
    }

    fn admits(&self, _signal: &Signal) -> Admission {
        Admission::Accept
    }

    fn snapshot(&self) -> Vec<u8> {
        self.task.clone().into_bytes()
    }
}

impl Turn {
    fn publish(&self, state: TaskState, at: Timestamp) -> Publish {
        let status = StatusChange::to(state).with_text(Content::from("a step further"));
        Publish {
            task_id: TaskId::new(&self.task),
            key: String::new(),
            events: vec![TaskEvent::StatusChanged(status.clone())],
            record: Some(TaskRecord {
                usage: Default::default(),
                task_id: TaskId::new(&self.task),
                context_id: ContextId::new("bench"),
                lifecycle: Lifecycle::Delegated,
                status,
                status_at: at,
                created_at: at,
                extension: TaskExtension::default(),
            }),
            history: Vec::new(),
        }
    }
}

/// Everything the engine needs besides a store, as cheap as can be.
struct Bare {
    started: Instant,
    ids: AtomicU64,
}

impl ActivityHost for Bare {
    fn run(
        &self,
        task: ActivityTask,
        _: ActivityContext,
    ) -> BoxFuture<'static, Result<Value, ActivityFailure>> {
        Box::pin(async move { Ok(task.input) })
    }
}

impl Clock for Bare {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.started.elapsed())
    }
}

impl IdSource for Bare {
    fn fresh(&self) -> String {
        self.ids.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

struct Bench {
    engine: Arc<LocalEngine>,
    store: Arc<dyn Store>,
    next: AtomicU64,
}

impl Bench {
    fn over(store: Arc<dyn Store>) -> Self {
        let bare = Arc::new(Bare { started: Instant::now(), ids: AtomicU64::new(0) });
        let parts = EngineParts {
            store: Arc::clone(&store),
            activities: Arc::clone(&bare) as _,
            clock: Arc::clone(&bare) as _,
            ids: bare,
            workflows: vec![Arc::new(Turns)],
        };
        let engine = LocalEngine::start(parts, EngineOptions::default());
        Self { engine, store, next: AtomicU64::new(0) }
    }

    /// One whole turn, seen from outside: from the message to the last line of the log.
    async fn turn(&self) {
        let id = format!("task-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let signal = Signal {
            name: "message.v1".to_owned(),
            payload: json!({ "message_id": id, "sender": "bench" }),
            dedupe_key: Some(format!("bench/{id}")),
            trace: None,
        };
        let delivery = Delivery {
            workflow_id: WorkflowId::new(&id),
            start: Some(StartWorkflow { workflow_type: "turn.v1".to_owned(), input: json!(id) }),
            signal: Some(signal),
            blocks: Vec::new(),
        };
        black_box(self.engine.deliver(delivery).await.expect("the bench store works"));
        let log = self.store.follow(&TaskId::new(&id), None);
        let lines = usize::try_from(STEPS).expect("small") + 1;
        black_box(log.take(lines).collect::<Vec<_>>().await);
    }
}

fn turns(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().expect("a directory");
    let sqlite = SqliteStore::open(StoreOptions::new(directory.path().join("bench.db"))).expect("a store");
    let benches =
        [("memory", Bench::over(MemoryStore::new() as _)), ("sqlite", Bench::over(Arc::clone(&sqlite) as _))];
    for (name, bench) in benches {
        let mut group = criterion.benchmark_group(name);
        for in_flight in [1_u64, 16, 64] {
            group.throughput(Throughput::Elements(in_flight));
            group.bench_function(BenchmarkId::new("turns in flight", in_flight), |bencher| {
                bencher.to_async(&runtime).iter(|| async {
                    let all = stream::iter(0..in_flight).map(|_| bench.turn());
                    all.buffer_unordered(64).for_each(|()| async {}).await;
                });
            });
        }
        group.finish();
        runtime.block_on(bench.engine.drain(Duration::from_secs(5)));
    }
    runtime.block_on(sqlite.close());
}

criterion_group!(benches, turns);
criterion_main!(benches);
