//! What the store costs: durable commits per second, wake-ups, small reads, and a page of a million tasks.
//!
//! `floor` rows are a bare loop over the same tables: the least that the same rows cost with the same durability.

#![expect(clippy::unwrap_used, reason = "a failed unwrap ends the benchmark")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use harness_model::{
    ContextId, Lifecycle, Participant, ParticipantKind, ParticipantRole, StatusChange, TaskEvent,
    TaskExtension, TaskId, TaskRecord, TaskState, Timestamp,
};
use harness_ports::{
    ActivityOptions, ActivityTask, EventKind, HistoryEvent, OnCrash, Publish, Store, TaskFields, TaskQuery,
    Write, WriteBatch,
};
use harness_store::{SqliteStore, StoreOptions};
use rusqlite::{Connection, config::DbConfig, params};
use serde_json::json;
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::mpsc, task::JoinSet};

const TASKS: usize = 1_000_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn open(directory: &TempDir) -> Arc<SqliteStore> {
    SqliteStore::open(StoreOptions::new(directory.path().join("store.db"))).unwrap()
}

/// One step of a task: an event, the activity that ended, the one that follows, and what subscribers see.
fn step(task: &str, seq: u64) -> WriteBatch {
    let event = HistoryEvent {
        at: Timestamp::from_millis(0),
        kind: EventKind::Started { input: json!({ "text": "x".repeat(200) }) },
    };
    let activity = ActivityTask {
        activity_id: format!("a{seq}").as_str().into(),
        name: "act.v1".to_owned(),
        input: json!({ "n": seq }),
        options: ActivityOptions {
            start_to_close: Duration::from_secs(60),
            on_crash: OnCrash::ReportUnknown,
        },
        trace: None,
    };
    let mut writes = vec![
        Write::AppendJournal { workflow_id: task.into(), seq, event },
        Write::AnnounceActivity { workflow_id: task.into(), task: activity },
        Write::Publish(Box::new(Publish {
            task_id: task.into(),
            key: seq.to_string(),
            events: vec![TaskEvent::StatusChanged(StatusChange::to(TaskState::Working))],
            record: None,
            history: Vec::new(),
        })),
    ];
    match seq.checked_sub(1) {
        None => writes.insert(
            0,
            Write::CreateWorkflow { workflow_id: task.into(), workflow_type: "task.v1".to_owned() },
        ),
        Some(before) => writes.push(Write::RemoveActivity {
            workflow_id: task.into(),
            activity_id: format!("a{before}").as_str().into(),
        }),
    }
    WriteBatch::new(Timestamp::from_millis(0), writes)
}

fn commits(c: &mut Criterion) {
    let runtime = runtime();
    let mut group = c.benchmark_group("commits");
    group.sample_size(10).throughput(Throughput::Elements(1));
    for producers in [1_u64, 16, 64, 512] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let (mut run, mut waits) = (0, Vec::new());
        group.bench_function(BenchmarkId::new("store", producers), |b| {
            b.iter_custom(|iterations| {
                run += 1;
                let (elapsed, of_run) = runtime.block_on(produce(&store, run, producers, iterations));
                waits.extend(of_run);
                elapsed
            });
        });
        report(&format!("commits/store/{producers}"), waits);
    }
    for batches in [1_u64, 16, 64, 512] {
        let directory = tempfile::tempdir().unwrap();
        let connection = floor(&directory);
        let next = AtomicU64::new(0);
        group.bench_function(BenchmarkId::new("floor", batches), |b| {
            b.iter_custom(|iterations| bare_loop(&connection, &next, batches, iterations));
        });
    }
    group.finish();
}

/// `iterations` commits by so many producers at once.
async fn produce(
    store: &Arc<SqliteStore>,
    run: u64,
    producers: u64,
    iterations: u64,
) -> (Duration, Vec<Duration>) {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for producer in 0..producers {
        let store = Arc::clone(store);
        let share = iterations / producers + u64::from(producer < iterations % producers);
        tasks.spawn(async move {
            let task = format!("01890a5d-ac96-774b-bcce-{run:04}{producer:08}");
            let mut waits = Vec::new();
            for seq in 0..share {
                let begun = Instant::now();
                store.commit(step(&task, seq)).await.unwrap();
                waits.push(begun.elapsed());
            }
            waits
        });
    }
    let waits = tasks.join_all().await;
    (started.elapsed(), waits.concat())
}

/// The tables of the store with nothing around them.
fn floor(directory: &TempDir) -> Connection {
    drop(open(directory));
    let connection = Connection::open(directory.path().join("store.db")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;")
        .unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
    connection
}

/// The rows of so many batches in each transaction.
fn bare_loop(connection: &Connection, next: &AtomicU64, batches: u64, iterations: u64) -> Duration {
    let started = Instant::now();
    let mut left = iterations;
    while left > 0 {
        let group = left.min(batches);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..group {
            let n = next.fetch_add(1, Ordering::Relaxed).cast_signed();
            let text = "x".repeat(250);
            let id = format!("01890a5d-ac96-774b-bcce-{:012}", n % 512);
            for (sql, params) in [
                ("INSERT INTO journal VALUES (?1, ?2, ?3)", params![n % 512, n, text]),
                ("INSERT OR REPLACE INTO activities VALUES (?1, ?2, ?3)", params![id, n.to_string(), text]),
                ("INSERT INTO publish_keys VALUES (?1, ?2)", params![n % 512, n.to_string()]),
                ("INSERT INTO log VALUES (?1, ?2, 0, 2, ?3)", params![n % 512, n, text]),
                (
                    "DELETE FROM activities WHERE workflow_id = ?1 AND activity_id = ?2",
                    params![id, (n - 512).to_string()],
                ),
            ] {
                connection.prepare_cached(sql).unwrap().execute(params).unwrap();
            }
        }
        connection.execute_batch("COMMIT").unwrap();
        left -= group;
    }
    started.elapsed()
}

/// From the moment a commit is answered until the last of the followers has the entry.
fn wake_ups(c: &mut Criterion) {
    let runtime = runtime();
    let mut group = c.benchmark_group("wake_up");
    group.sample_size(10);
    for followers in [1_usize, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let mut waits = Vec::new();
        group.bench_function(BenchmarkId::from_parameter(followers), |b| {
            b.iter_custom(|iterations| {
                let of_run = runtime.block_on(wake(&store, followers, iterations));
                waits.extend_from_slice(&of_run);
                of_run.iter().sum()
            });
        });
        report(&format!("wake_up/{followers}"), waits);
    }
    group.finish();
}

async fn wake(store: &Arc<SqliteStore>, followers: usize, iterations: u64) -> Vec<Duration> {
    static RUN: AtomicU64 = AtomicU64::new(0);
    let task = format!("t{}", RUN.fetch_add(1, Ordering::Relaxed));
    let (seen, mut all_seen) = mpsc::channel(followers);
    let mut tasks = JoinSet::new();
    for _ in 0..followers {
        let (mut stream, seen) = (store.follow(&TaskId::from(task.as_str()), None), seen.clone());
        tasks.spawn(async move {
            for _ in 0..=iterations {
                stream.next().await.unwrap().unwrap();
                seen.send(Instant::now()).await.unwrap();
            }
        });
    }
    let mut waits = Vec::new();
    for seq in 0..=iterations {
        store.commit(step(&task, seq)).await.unwrap();
        let answered = Instant::now();
        let mut last = answered;
        for _ in 0..followers {
            last = last.max(all_seen.recv().await.unwrap());
        }
        waits.push(last - answered);
    }
    tasks.join_all().await;
    // Before the first entry every follower had to look into the log.
    waits.split_off(1)
}

#[expect(clippy::print_stderr, reason = "criterion prints no percentiles")]
fn report(name: &str, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let at = |percent: usize| waits.get(waits.len() * percent / 100);
    if let (Some(p50), Some(p99), Some(max)) = (at(50), at(99), waits.last()) {
        eprintln!("{name}: p50 {p50:?}, p99 {p99:?}, max {max:?} of {}", waits.len());
    }
}

fn reads(c: &mut Criterion) {
    let runtime = runtime();
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    runtime.block_on(async {
        store.commit(WriteBatch::new(Timestamp::from_millis(0), vec![put_task(0)])).await.unwrap();
        store.commit(step("w", 0)).await.unwrap();
    });
    let mut group = c.benchmark_group("reads");
    group.bench_function("delivery", |b| {
        let workflow = "w".into();
        b.to_async(&runtime).iter(|| store.delivery(&workflow, "key"));
    });
    group.bench_function("task_bare", |b| {
        let task = task_id(0);
        b.to_async(&runtime).iter(|| store.task(&task, TaskFields::BARE));
    });
    group.bench_function("task_all", |b| {
        let task = task_id(0);
        b.to_async(&runtime).iter(|| store.task(&task, TaskFields::ALL));
    });
    group.bench_function("workflow", |b| {
        let workflow = "w".into();
        b.to_async(&runtime).iter(|| store.workflow(&workflow));
    });
    group.finish();
}

fn task_id(n: usize) -> TaskId {
    // Ids in no order, as real ones are.
    format!("{:016x}-{n:08}", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).as_str().into()
}

fn put_task(n: usize) -> Write {
    let participant = |id: &str, role| Participant {
        id: id.into(),
        kind: ParticipantKind::Human,
        role,
        display_name: String::new(),
    };
    let record = TaskRecord {
        usage: Default::default(),
        task_id: task_id(n),
        context_id: ContextId::from(format!("c{}", n / 4)),
        lifecycle: Lifecycle::Conversation,
        status: StatusChange::to(TaskState::ALL[n % TaskState::ALL.len()]),
        status_at: Timestamp::from_millis(i64::try_from(n / 3).unwrap()),
        created_at: Timestamp::from_millis(0),
        extension: TaskExtension {
            name: "complaint".to_owned(),
            goal: "an answer".to_owned(),
            participants: vec![
                participant("ann", ParticipantRole::Reporter),
                participant("tiny-harness", ParticipantRole::Assignee),
            ],
            ..TaskExtension::default()
        },
    };
    Write::Publish(Box::new(Publish {
        task_id: task_id(n),
        key: "0".to_owned(),
        events: vec![TaskEvent::TaskCreated],
        record: Some(record),
        history: Vec::new(),
    }))
}

fn listing(c: &mut Criterion) {
    let runtime = runtime();
    let seeded: OnceLock<(TempDir, Arc<SqliteStore>)> = OnceLock::new();
    let seed = || {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        for first in (0..TASKS).step_by(5_000) {
            let writes = (first..first + 5_000).map(put_task).collect();
            runtime.block_on(store.commit(WriteBatch::new(Timestamp::from_millis(0), writes))).unwrap();
        }
        (directory, store)
    };
    let mut group = c.benchmark_group("page_of_50_among_1000000");
    let half = Some(harness_ports::TaskCursor {
        status_at: Timestamp::from_millis(i64::try_from(TASKS / 6).unwrap()),
        task_id: "".into(),
    });
    for (name, visible_to, state, after) in [
        ("operator", None, None, None),
        ("participant", Some("ann"), None, None),
        ("participant_from_the_middle", Some("ann"), None, half),
        ("participant_and_state", Some("ann"), Some(TaskState::Failed), None),
    ] {
        let query = TaskQuery {
            visible_to: visible_to.map(Into::into),
            context_id: None,
            state,
            status_since: None,
            after,
            limit: 50,
            fields: TaskFields::BARE,
        };
        let mut waits = Vec::new();
        group.bench_function(name, |b| {
            let store = &seeded.get_or_init(seed).1;
            b.iter_custom(|iterations| {
                let mut sum = Duration::ZERO;
                for _ in 0..iterations {
                    let started = Instant::now();
                    let page = runtime.block_on(store.tasks(query.clone())).unwrap();
                    assert_eq!((page.tasks.len(), page.total), (50, 10_000));
                    waits.push(started.elapsed());
                    sum += waits[waits.len() - 1];
                }
                sum
            });
        });
        report(&format!("page_of_50/{name}"), waits);
    }
    group.finish();
}

fn start(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory));
    c.bench_function("open_and_close", |b| b.iter(|| drop(open(&directory))));
}

criterion_group!(benches, commits, wake_ups, reads, start, listing);
criterion_main!(benches);
