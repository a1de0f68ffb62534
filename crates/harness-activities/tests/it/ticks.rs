//! The tick: channels are polled, the picture is taken, what is past its retention goes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use harness_activities::{
    EngineFacts, EngineWatch, Outbox, ProcessInfo, Retention, STEP_TIME, Tick, TickDeps,
};
use harness_model::{
    CodedError, Content, ContextId, HelpRequest, Lifecycle, StatusChange, SubState, TaskExtension, TaskId,
    TaskRecord, TaskState, Timestamp, codes,
};
use harness_ports::{
    Block, Clock, Publish, PullChannel, Record, RecordKind, RowKind, Store, StoreError, TaskFields, Write,
    WriteBatch,
};
use harness_testkit::{Fault, FaultStore, MemoryStore};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_secs(86_400);

/// A clock that is set.
#[derive(Default)]
pub(crate) struct SetClock(AtomicI64);

impl SetClock {
    pub(crate) fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

struct Watch;

impl EngineWatch for Watch {
    fn look(&self) -> BoxFuture<'_, Result<EngineFacts, StoreError>> {
        let facts =
            EngineFacts { kind: "of the test", workflow_task_failures: Some(2), ..EngineFacts::default() };
        Box::pin(async { Ok(facts) })
    }
}

struct Behind(u64);

impl Outbox for Behind {
    fn behind(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async { Ok(self.0) })
    }
}

/// A channel: how many messages it brings, or how it fails.
pub(crate) enum Channel {
    Brings(u64),
    Fails,
    Hangs,
}

impl PullChannel for Channel {
    fn id(&self) -> &str {
        "channel"
    }

    fn poll(&self) -> BoxFuture<'_, Result<u64, CodedError>> {
        match self {
            Self::Brings(messages) => Box::pin(async { Ok(*messages) }),
            Self::Fails => Box::pin(async { Err(CodedError::new(codes::HARNESS_ERROR, "no")) }),
            Self::Hangs => Box::pin(std::future::pending()),
        }
    }
}

fn day(n: u32) -> Timestamp {
    Timestamp::from_millis(0).plus(DAY * n)
}

pub(crate) fn record(task: &str, status: StatusChange, status_at: Timestamp) -> TaskRecord {
    TaskRecord {
        usage: Default::default(),
        task_id: task.into(),
        context_id: ContextId::from("context"),
        lifecycle: Lifecycle::Conversation,
        status,
        status_at,
        created_at: status_at,
        extension: TaskExtension {
            name: "a secret name".to_owned(),
            goal: "a secret goal".to_owned(),
            ..TaskExtension::default()
        },
    }
}

pub(crate) fn publish(record: TaskRecord) -> Write {
    Write::Publish(Box::new(Publish {
        task_id: record.task_id.clone(),
        key: format!("{}/{}", record.status.state.name(), record.status_at),
        events: Vec::new(),
        record: Some(record),
        history: Vec::new(),
    }))
}

async fn put(store: &dyn Store, at: Timestamp, writes: Vec<Write>) {
    store.commit(WriteBatch::new(at, writes)).await.unwrap();
}

async fn put_task(store: &dyn Store, task: &str, status: StatusChange, status_at: Timestamp) {
    put(store, status_at, vec![publish(record(task, status, status_at))]).await;
}

struct Lab {
    clock: Arc<SetClock>,
    store: Arc<dyn Store>,
    tick: Tick,
}

fn lab(store: Arc<dyn Store>, channels: Vec<Channel>) -> Lab {
    let clock = Arc::new(SetClock::default());
    let tick = Tick::new(deps(&store, &clock, DAY * 30, channels));
    Lab { clock, store, tick }
}

pub(crate) fn deps(
    store: &Arc<dyn Store>,
    clock: &Arc<SetClock>,
    tasks: Duration,
    channels: Vec<Channel>,
) -> TickDeps {
    TickDeps {
        engine: Arc::new(Watch),
        store: Arc::clone(store),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        channels: channels.into_iter().map(|channel| Arc::new(channel) as Arc<dyn PullChannel>).collect(),
        outbox: Some(Arc::new(Behind(7))),
        retention: Retention { tasks, inbox_audit: DAY * 10, push_configs: DAY * 20 },
        process: ProcessInfo {
            version: "1.2.3".to_owned(),
            pid: 42,
            host: "abc".to_owned(),
            started_at: Timestamp::from_millis(0),
        },
        interval: Duration::from_secs(30),
    }
}

async fn picture(store: &dyn Store) -> Value {
    let records = store.records(RecordKind::Monitor, &Record::no_task(), 9).await.unwrap();
    assert_eq!(records.len(), 1, "one picture, replaced each time");
    records[0].value.clone()
}

fn asking() -> StatusChange {
    let mut status = StatusChange::to(TaskState::InputRequired);
    status.help = Some(HelpRequest {
        participant_id: "ada".into(),
        question: Content::from("a secret question"),
        options: Vec::new(),
    });
    status
}

fn parked() -> StatusChange {
    let mut status = StatusChange::to(TaskState::InputRequired).with_text(Content::from("a secret answer"));
    status.sub_state = Some(SubState::AwaitingNextMessage);
    status
}

#[tokio::test]
async fn the_picture_shows_numbers_and_nothing_that_was_said() {
    let lab = lab(MemoryStore::new(), Vec::new());
    put_task(&*lab.store, "parked", parked(), day(1)).await;
    put_task(&*lab.store, "asking", asking(), day(2)).await;
    put_task(&*lab.store, "working", StatusChange::to(TaskState::Working), day(3)).await;
    put_task(&*lab.store, "done", StatusChange::to(TaskState::Completed), day(3)).await;
    let timer = Write::StartTimer { workflow_id: "w".into(), timer_id: "t".into(), due_at: day(3) };
    let create = Write::CreateWorkflow { workflow_id: "w".into(), workflow_type: "other.v1".to_owned() };
    put(&*lab.store, day(3), vec![create, timer]).await;
    lab.clock.set(day(3).plus(Duration::from_millis(5)));
    lab.tick.run().await.unwrap();
    let seen = picture(&*lab.store).await;
    let row = |task: &str, state: &str, at: Timestamp, help: bool, sub_state: Value| {
        json!({"task_id": task, "context_id": "context", "state_name": state, "since": at.to_rfc3339(),
            "pending_help": help, "sub_state": sub_state, "children": 0,
            "turn": null, "mailbox": null, "phase": null})
    };
    let expected = json!({
        "at": lab.clock.now().to_rfc3339(),
        "interval_ms": 30_000,
        "tasks": [
            row("working", "WORKING", day(3), false, Value::Null),
            row("parked", "INPUT_REQUIRED", day(1), false, json!("awaiting-next-message")),
            row("asking", "INPUT_REQUIRED", day(2), true, Value::Null),
        ],
        "tasks_omitted": 0,
        "pending_help": 1,
        "queued_messages": 0,
        "oldest_waiting": {"task_id": "asking", "state_name": "INPUT_REQUIRED", "since": day(2).to_rfc3339(),
            "waiting_ms": 86_400_005, "pending_help": true},
        "counts": {
            "tasks": {"WORKING": 1, "INPUT_REQUIRED": 2, "COMPLETED": 1},
            "activities": 0, "timers": 1, "outbox": 7, "records": {},
        },
        "timer_lag_ms": 5,
        "ticks": {"completed": 0, "failed": 0},
        "engine": {"kind": "of the test", "workflow_task_failures": 2},
        "process": {"version": "1.2.3", "pid": 42, "host": "abc", "started_at": day(0).to_rfc3339()},
    });
    assert_eq!(seen, expected);
    lab.tick.run().await.unwrap();
    let seen = picture(&*lab.store).await;
    assert_eq!(seen["ticks"], json!({"completed": 1, "failed": 0}));
    assert_eq!(seen["counts"]["records"], json!({"monitor": 1}));
    assert!(!seen.to_string().contains("secret"));
}

#[tokio::test]
async fn a_crowd_of_tasks_is_counted_and_shown_in_part() {
    let lab = lab(MemoryStore::new(), Vec::new());
    for n in 0..150_u32 {
        put_task(&*lab.store, &format!("w{n:03}"), StatusChange::to(TaskState::Working), day(n + 1)).await;
        put_task(&*lab.store, &format!("q{n:03}"), asking(), day(n + 1)).await;
    }
    lab.tick.run().await.unwrap();
    let seen = picture(&*lab.store).await;
    let names: Vec<&str> =
        seen["tasks"].as_array().unwrap().iter().map(|row| row["task_id"].as_str().unwrap()).collect();
    assert_eq!((names.len(), &seen["tasks_omitted"]), (200, &json!(100)));
    assert_eq!((names[0], names[149], names[150], names[199]), ("w000", "w149", "q000", "q049"));
    assert_eq!(seen["pending_help"], 150, "those that are not shown are counted");
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_fails_or_hangs_keeps_nobody_waiting() {
    let channels =
        vec![Channel::Brings(2), Channel::Hangs, Channel::Brings(3), Channel::Fails, Channel::Brings(0)];
    let lab = lab(MemoryStore::new(), channels);
    let began = tokio::time::Instant::now();
    let report = lab.tick.run().await.unwrap();
    assert_eq!((report.messages, report.channels_failed), (5, 2));
    assert!(began.elapsed() < STEP_TIME);
    assert_eq!(picture(&*lab.store).await["tasks"], json!([]), "the rest of the tick is done");
}

#[tokio::test]
async fn a_failed_tick_is_counted_and_the_next_one_is_whole() {
    let store = FaultStore::over(MemoryStore::new(), Fault::Fail { first: 2, last: 2 });
    let lab = lab(store, Vec::new());
    put_task(&*lab.store, "old", StatusChange::to(TaskState::Failed), day(1)).await;
    lab.clock.set(day(50));
    // The second commit is the picture; what comes after it is done all the same.
    let error = lab.tick.run().await.unwrap_err().to_string();
    assert!(error.starts_with("the tick failed: monitor_snapshot: "), "{error}");
    assert_eq!(lab.store.task(&"old".into(), TaskFields::BARE).await.unwrap(), None);
    lab.tick.run().await.unwrap();
    assert_eq!(picture(&*lab.store).await["ticks"], json!({"completed": 0, "failed": 1}));
    assert_eq!((lab.tick.completed(), lab.tick.failed()), (1, 1));
}

#[tokio::test]
async fn what_is_past_its_retention_goes_and_nothing_else() {
    let lab = lab(MemoryStore::new(), Vec::new());
    let store = &*lab.store;
    let block = Block::new("old words");
    for (task, state, at) in [
        ("old", TaskState::Completed, 1),
        ("older", TaskState::Canceled, 0),
        ("young", TaskState::Completed, 31),
        ("waiting", TaskState::InputRequired, 0),
        ("busy", TaskState::Rejected, 0),
    ] {
        put_task(store, task, StatusChange::to(state), day(at)).await;
    }
    let task_id = TaskId::from("old");
    put(store, day(1), vec![Write::PutBlock { block: block.clone(), task_id }]).await;
    // A workflow that is not closed, at the head of those that are past their retention.
    let create = Write::CreateWorkflow { workflow_id: "busy".into(), workflow_type: "task.v1".to_owned() };
    put(store, day(0), vec![create]).await;
    for (kind, id, at) in [
        (RecordKind::InboxAudit, "audit old", 49),
        (RecordKind::InboxAudit, "audit young", 51),
        (RecordKind::PushConfig, "push old", 39),
        (RecordKind::PushConfig, "push young", 41),
        (RecordKind::SpilledResult, "spilled", 0),
    ] {
        let value = json!({});
        let record = Record { kind, id: id.to_owned(), task_id: "waiting".into(), value };
        put(store, day(at), vec![Write::PutRecord(record)]).await;
    }
    lab.clock.set(day(60));
    let deleted = lab.tick.run().await.unwrap().deleted;
    let expected = [
        (RowKind::Task, 2),
        (RowKind::Block, 1),
        (RowKind::Record(RecordKind::InboxAudit), 1),
        (RowKind::Record(RecordKind::PushConfig), 1),
    ];
    assert_eq!(deleted, expected.into());
    for (task, left) in [("old", false), ("older", false), ("young", true), ("waiting", true), ("busy", true)]
    {
        let found = store.task(&task.into(), TaskFields::BARE).await.unwrap();
        assert_eq!(found.is_some(), left, "{task}");
    }
    assert_eq!(store.block(&block.reference.id).await.unwrap(), None);
    for (kind, left) in [
        (RecordKind::InboxAudit, "audit young"),
        (RecordKind::PushConfig, "push young"),
        (RecordKind::SpilledResult, "spilled"),
    ] {
        let records = store.records(kind, &"waiting".into(), 9).await.unwrap();
        assert_eq!(records.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), [left]);
    }
    assert!(lab.tick.run().await.unwrap().deleted.is_empty());
}
