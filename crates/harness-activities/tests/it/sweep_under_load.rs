//! Retention while everybody writes and reads, over the store that one host uses.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use harness_activities::Tick;
use harness_model::{StatusChange, TaskEvent, TaskId, TaskState, Timestamp};
use harness_ports::{Block, Publish, Record, RecordKind, Store, TaskFields, TaskQuery, Write, WriteBatch};
use harness_store::{SqliteStore, StoreOptions};
use serde_json::json;
use tokio::task::JoinSet;

use crate::ticks::{SetClock, deps, publish, record};

const WRITERS: usize = 50;
const READERS: usize = 10;
/// Tasks of one writer. Every second one ends long ago; the others go on, or have ended just now.
const TASKS: usize = 8;
const ENTRIES: usize = 6;
const SHARED: &str = "a block that every task keeps";

/// Now; what is a day older is past its retention.
fn now() -> Timestamp {
    Timestamp::from_millis(10 * 86_400_000)
}

fn is_kept(n: usize) -> bool {
    n.is_multiple_of(2)
}

fn final_record(task: &str, n: usize) -> (StatusChange, Timestamp) {
    match n % 4 {
        0 => (StatusChange::to(TaskState::Completed), now()),
        2 => (StatusChange::to(TaskState::InputRequired), Timestamp::from_millis(5)),
        _ => (StatusChange::to(TaskState::Failed), Timestamp::from_millis(task.len() as i64)),
    }
}

/// Lives through a task as an engine does: one commit after another, then the end.
async fn live(store: &dyn Store, task: &str, n: usize) {
    let commit = async |writes| store.commit(WriteBatch::new(now(), writes)).await.unwrap();
    let task_id = TaskId::from(task);
    let put = |text: String| Write::PutBlock { block: Block::new(text), task_id: task_id.clone() };
    commit(vec![
        put(SHARED.to_owned()),
        put(format!("words of {task}")),
        Write::CreateWorkflow { workflow_id: task.into(), workflow_type: "task.v1".to_owned() },
        publish(record(task, StatusChange::to(TaskState::Working), now())),
    ])
    .await;
    for entry in 0..ENTRIES {
        let id = format!("{task}/{entry}");
        let value = json!({ "n": entry });
        let kind = RecordKind::SpilledResult;
        commit(vec![
            Write::RequireTask { task_id: task_id.clone() },
            put(format!("{entry} of {task}")),
            Write::PutRecord(Record { kind, id: id.clone(), task_id: task_id.clone(), value }),
            Write::Publish(Box::new(Publish {
                task_id: task_id.clone(),
                key: id,
                events: vec![TaskEvent::StatusChanged(StatusChange::to(TaskState::Working))],
                record: None,
                history: Vec::new(),
            })),
        ])
        .await;
    }
    let (status, at) = final_record(task, n);
    let ended = status.state.is_terminal();
    let mut writes = vec![publish(record(task, status, at))];
    if ended {
        writes.push(Write::CloseWorkflow { workflow_id: task.into() });
    }
    commit(writes).await;
}

/// Reads whatever there is: lists, whole tasks, logs, blocks, and follows for a while. Nothing may fail.
async fn read(store: &dyn Store) {
    let query = TaskQuery {
        visible_to: None,
        context_id: None,
        state: None,
        status_since: None,
        after: None,
        limit: 20,
        fields: TaskFields::BARE,
    };
    for found in store.tasks(query).await.unwrap().tasks {
        let task_id = found.record.task_id;
        store.task(&task_id, TaskFields::ALL).await.unwrap();
        let log = store.log(&task_id, None, 100).await.unwrap();
        assert!(log.iter().map(|entry| entry.seq).eq(0..log.len() as u64), "no half of a log: {log:?}");
        store.workflow(&(&task_id).into()).await.unwrap();
        let followed = store.follow(&task_id, None).take(log.len());
        // A deleted task ends its stream early; one that cannot be read fails it.
        let followed = tokio::time::timeout(Duration::from_secs(60), followed.collect::<Vec<_>>());
        for entry in followed.await.expect("a stream of a deleted task ends") {
            entry.unwrap();
        }
    }
    store.census().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_locked_nothing_is_lost_and_nothing_is_kept_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(StoreOptions::new(folder.path().join("store.sqlite3"))).unwrap();
    let store: Arc<dyn Store> = sqlite.clone();
    let clock = Arc::new(SetClock::default());
    clock.set(now());
    let tick = Arc::new(Tick::new(deps(&store, &clock, Duration::from_secs(86_400), Vec::new())));
    let (writing, done) = (Arc::new(AtomicUsize::new(WRITERS)), Arc::new(AtomicBool::new(false)));
    let mut everybody = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, writing) = (Arc::clone(&store), Arc::clone(&writing));
        everybody.spawn(async move {
            for n in 0..TASKS {
                live(&*store, &format!("t{writer}-{n}"), n).await;
            }
            writing.fetch_sub(1, Ordering::SeqCst);
        });
    }
    for _ in 0..READERS {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        everybody.spawn(async move {
            while !done.load(Ordering::SeqCst) {
                read(&*store).await;
            }
        });
    }
    let sweeper = Arc::clone(&tick);
    everybody.spawn(async move {
        while writing.load(Ordering::SeqCst) > 0 {
            sweeper.run().await.unwrap();
            tokio::task::yield_now().await;
        }
        sweeper.run().await.unwrap();
        done.store(true, Ordering::SeqCst);
    });
    while let Some(ended) = everybody.join_next().await {
        ended.unwrap();
    }
    assert_eq!(tick.failed(), 0);
    assert!(tick.completed() > 1, "the sweep ran while others wrote");
    let kept: BTreeSet<String> = (0..WRITERS)
        .flat_map(|writer| (0..TASKS).filter(|n| is_kept(*n)).map(move |n| format!("t{writer}-{n}")))
        .collect();
    assert_eq!(left(&*store).await, kept);
    let census = store.census().await.unwrap();
    let records = (kept.len() * ENTRIES) as u64;
    assert_eq!(census.records[&RecordKind::SpilledResult], records);
    assert!(store.block(&Block::new(SHARED).reference.id).await.unwrap().is_some());
    for writer in 0..WRITERS {
        for n in 0..TASKS {
            let task = format!("t{writer}-{n}");
            for text in [format!("words of {task}"), format!("0 of {task}")] {
                let block = store.block(&Block::new(text).reference.id).await.unwrap();
                assert_eq!(block.is_some(), is_kept(n), "blocks of {task}");
            }
            assert_eq!(store.workflow(&task.as_str().into()).await.unwrap().is_some(), is_kept(n), "{task}");
        }
    }
    sqlite.close().await;
}

/// Every task that is listed.
async fn left(store: &dyn Store) -> BTreeSet<String> {
    let (mut left, mut after) = (BTreeSet::new(), None);
    loop {
        let query = TaskQuery {
            visible_to: None,
            context_id: None,
            state: None,
            status_since: None,
            after,
            limit: 100,
            fields: TaskFields::BARE,
        };
        let page = store.tasks(query).await.unwrap();
        left.extend(page.tasks.into_iter().map(|task| task.record.task_id.to_string()));
        after = page.next;
        if after.is_none() {
            return left;
        }
    }
}
