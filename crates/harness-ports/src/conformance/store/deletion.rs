//! Deletion of tasks: what goes, what stays, and what never comes back. And what is counted and found by age.

use std::collections::BTreeMap;

use futures::{StreamExt, future::join_all};
use harness_model::{TaskEvent, TaskId, TaskState, WorkflowId};
use serde_json::json;

use super::{
    StoreHome,
    fixtures::{
        announce, append, at, commit, create, is_conflict, publish, put_block, put_task, record,
        record_delivery, save_snapshot, soon, status_event, timer, try_commit, write,
    },
};
use crate::{
    Block, Census, Committed, DeleteWhen, DeletedRows, HistoryAppend, OldestTasks, Publish, Record,
    RecordKind, RowKind, Store, TaskCursor, TaskFields, TaskQuery, Write,
};

fn delete(task: &str, when: DeleteWhen) -> Write {
    Write::DeleteTask { task_id: task.into(), when }
}

fn put_record(kind: RecordKind, task: &str) -> Write {
    let id = format!("{task}:{}", kind.name());
    Write::PutRecord(Record { kind, id, task_id: task.into(), value: json!({}) })
}

/// A task with something of everything: its own block, a shared one, an open workflow, a log and records.
async fn whole_task(store: &dyn Store, task: &str, state: TaskState) {
    let own = Block::new(format!("only of {task}"));
    let history = vec![
        HistoryAppend::Message { message_id: "m".into(), block: own.reference.clone() },
        HistoryAppend::Status { event: 1 },
    ];
    let record = record(task, "c", state, 100, &["ann"]);
    let mut writes = vec![
        put_block(task, &own),
        put_block(task, &Block::new("shared")),
        create(task),
        append(task, 0),
        append(task, 1),
        save_snapshot(task, 1, "state"),
        announce(task, "a"),
        timer(task, "t", 5),
        record_delivery(task, "key", None),
        write(Publish {
            task_id: task.into(),
            key: "k".to_owned(),
            events: vec![TaskEvent::TaskCreated, status_event("x")],
            record: Some(record),
            history,
        }),
    ];
    writes.extend(RecordKind::ALL.map(|kind| put_record(kind, task)));
    commit(store, writes).await;
}

/// Everything that can be read about a task.
async fn traces(store: &dyn Store, task: &str) -> Vec<String> {
    let (workflow_id, task_id) = (WorkflowId::from(task), TaskId::from(task));
    let mut found = Vec::new();
    let mut note = |what: &str, there: bool| {
        if there {
            found.push(what.to_owned());
        }
    };
    let own = Block::new(format!("only of {task}"));
    note("block", store.block(&own.reference.id).await.unwrap().is_some());
    note("workflow", store.workflow(&workflow_id).await.unwrap().is_some());
    let active = store.workflows_with_activities(None, 99).await.unwrap();
    note("activity", active.contains(&workflow_id));
    let timers = store.next_timers(99).await.unwrap();
    note("timer", timers.iter().any(|timer| timer.workflow_id == workflow_id));
    note("timer of workflow", !store.timers(&workflow_id).await.unwrap().is_empty());
    note("delivery", store.delivery(&workflow_id, "key").await.unwrap().is_some());
    note("log", !store.log(&task_id, None, 99).await.unwrap().is_empty());
    note("task", store.task(&task_id, TaskFields::ALL).await.unwrap().is_some());
    let query = TaskQuery {
        visible_to: Some("ann".into()),
        context_id: None,
        state: None,
        status_since: None,
        after: None,
        limit: 99,
        fields: TaskFields::BARE,
    };
    let listed = store.tasks(query).await.unwrap().tasks;
    note("listing", listed.iter().any(|snapshot| snapshot.record.task_id == task_id));
    let ended = oldest(store, TaskState::ALL.to_vec(), None, 99).await;
    note("age", ended.iter().any(|cursor| cursor.task_id == task_id));
    for kind in RecordKind::ALL {
        note(kind.name(), !store.records(kind, &task_id, 9).await.unwrap().is_empty());
        let page = store.records_page(kind, None, 99).await.unwrap();
        note(kind.name(), page.iter().any(|record| record.task_id == task_id));
    }
    found
}

async fn oldest(
    store: &dyn Store,
    states: Vec<TaskState>,
    after: Option<TaskCursor>,
    limit: usize,
) -> Vec<TaskCursor> {
    let query = OldestTasks { states, before: at(1_000_000), after, limit };
    store.oldest_tasks(query).await.unwrap()
}

/// Everything of a deleted task is gone and counted, also after a restart; nothing of its neighbour is. The id can be
/// used again, from the beginning.
pub async fn a_deleted_task_leaves_nothing(home: &dyn StoreHome) {
    let store = home.open().await;
    for task in ["t", "u"] {
        whole_task(&*store, task, TaskState::Working).await;
    }
    let before = traces(&*store, "u").await;
    assert_eq!(before, traces(&*store, "t").await, "a whole task shows everywhere");
    assert_eq!(before.len(), 10 + 2 * RecordKind::ALL.len());
    let deleted = commit(&*store, vec![delete("t", DeleteWhen::Always)]).await.deleted;
    let mut expected: DeletedRows = [
        (RowKind::Task, 1),
        (RowKind::Workflow, 1),
        (RowKind::Event, 2),
        (RowKind::Snapshot, 1),
        (RowKind::Activity, 1),
        (RowKind::Timer, 1),
        (RowKind::Delivery, 1),
        (RowKind::LogEntry, 2),
        (RowKind::HistoryEntry, 2),
        (RowKind::Block, 1),
    ]
    .into();
    expected.extend(RecordKind::ALL.map(|kind| (RowKind::Record(kind), 1)));
    assert_eq!(deleted, expected);
    assert!(traces(&*store, "t").await.is_empty());
    assert_eq!(traces(&*store, "u").await, before);
    let again = commit(&*store, vec![delete("t", DeleteWhen::Always), delete("never", DeleteWhen::Always)]);
    assert_eq!(again.await, Committed::default(), "there is nothing left to delete");
    drop(store);
    home.close().await;
    let store = home.open().await;
    assert!(traces(&*store, "t").await.is_empty());
    assert_eq!(traces(&*store, "u").await, before);
    whole_task(&*store, "t", TaskState::Working).await;
    assert_eq!(traces(&*store, "t").await, before);
    let log = store.log(&"t".into(), None, 9).await.unwrap();
    assert_eq!(log.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [0, 1]);
}

/// A block stays until the last task that keeps it is deleted, also one that is kept before its task comes to be.
pub async fn blocks_go_with_the_last_task_that_keeps_them(home: &dyn StoreHome) {
    let store = home.open().await;
    let (shared, large) = (Block::new("shared"), Block::new(vec![7; 2_000_000]));
    for task in ["a", "b", "c"] {
        commit(&*store, vec![put_block(task, &shared), put_block(task, &shared)]).await;
    }
    commit(&*store, vec![put_block("a", &large), put_task(record("a", "c", TaskState::Working, 1, &[]))])
        .await;
    let mut there = Vec::new();
    for task in ["a", "c", "b"] {
        let deleted = commit(&*store, vec![delete(task, DeleteWhen::Always)]).await.deleted;
        let found = store.block(&shared.reference.id).await.unwrap();
        assert_eq!(found.is_some(), task != "b");
        there.push(deleted.get(&RowKind::Block).copied().unwrap_or(0));
    }
    assert_eq!(there, [1, 0, 1]);
    assert_eq!(store.block(&large.reference.id).await.unwrap(), None);
    commit(&*store, vec![put_block("d", &shared)]).await;
    assert_eq!(store.block(&shared.reference.id).await.unwrap(), Some(shared.bytes));
}

/// By age, a task is deleted only when nothing of it goes on: it has ended, long enough ago, its workflow is closed, and
/// no activity of it is announced. Otherwise all of it stays.
pub async fn only_what_has_ended_is_deleted_by_age(home: &dyn StoreHome) {
    let store = home.open().await;
    let by_age = |task, before| vec![delete(task, DeleteWhen::EndedBefore(at(before)))];
    let close = |task: &str| Write::CloseWorkflow { workflow_id: task.into() };
    let quiet = |task: &str| Write::RemoveActivity { workflow_id: task.into(), activity_id: "a".into() };
    for (task, state, writes, before) in [
        ("working", TaskState::Working, vec![close("working"), quiet("working")], 101),
        ("waiting", TaskState::InputRequired, vec![close("waiting"), quiet("waiting")], 101),
        ("young", TaskState::Completed, vec![close("young"), quiet("young")], 100),
        ("open", TaskState::Failed, vec![quiet("open")], 101),
        ("busy", TaskState::Canceled, vec![close("busy")], 101),
    ] {
        whole_task(&*store, task, state).await;
        commit(&*store, writes).await;
        let seen = traces(&*store, task).await;
        assert_eq!(commit(&*store, by_age(task, before)).await, Committed::default(), "{task}");
        assert_eq!(traces(&*store, task).await, seen, "{task}");
    }
    for state in [TaskState::Completed, TaskState::Failed, TaskState::Canceled, TaskState::Rejected] {
        whole_task(&*store, "ended", state).await;
        commit(&*store, vec![close("ended"), quiet("ended")]).await;
        assert!(!commit(&*store, by_age("ended", 101)).await.deleted.is_empty(), "{state:?}");
        assert!(traces(&*store, "ended").await.is_empty(), "{state:?}");
    }
    commit(&*store, vec![put_task(record("alone", "c", TaskState::Completed, 100, &[]))]).await;
    let deleted = commit(&*store, by_age("alone", 101)).await.deleted;
    assert_eq!(deleted, [(RowKind::Task, 1)].into(), "a task without a workflow");
    assert_eq!(commit(&*store, by_age("never", 101)).await, Committed::default());
}

/// A batch that needs its task changes nothing once the task is deleted, and before there is one.
pub async fn nothing_brings_half_of_a_deleted_task_back(home: &dyn StoreHome) {
    let store = home.open().await;
    let late = || {
        vec![
            Write::RequireTask { task_id: "t".into() },
            put_block("t", &Block::new("only of t")),
            put_record(RecordKind::SpilledResult, "t"),
            write(publish("t", "late", vec![status_event("late")])),
        ]
    };
    assert!(is_conflict(&try_commit(&*store, late()).await), "there is no task yet");
    commit(&*store, vec![put_block("t", &Block::new("early"))]).await;
    assert!(is_conflict(&try_commit(&*store, late()).await), "a block alone is no task");
    whole_task(&*store, "t", TaskState::Working).await;
    assert_eq!(commit(&*store, late()).await.entries.len(), 1);
    commit(&*store, vec![delete("t", DeleteWhen::Always)]).await;
    assert!(is_conflict(&try_commit(&*store, late()).await));
    let events = vec![append("t", 2), save_snapshot("t", 2, "late"), record_delivery("t", "late", None)];
    for event in events {
        assert!(is_conflict(&try_commit(&*store, vec![event]).await));
    }
    assert!(traces(&*store, "t").await.is_empty());
}

/// Followers of a deleted task see what was published before, then the end; those of the next task of its id and of other
/// tasks go on. One that follows before the deletion and is polled after it ends too.
pub async fn followers_of_a_deleted_task_end(home: &dyn StoreHome) {
    let store = home.open().await;
    for task in ["t", "u"] {
        whole_task(&*store, task, TaskState::Working).await;
    }
    let mut at_the_end: Vec<_> = (0..5).map(|_| store.follow(&"t".into(), Some(1))).collect();
    let mut behind = store.follow(&"t".into(), None);
    let mut neighbour = store.follow(&"u".into(), Some(1));
    assert_eq!(soon(behind.next()).await.unwrap().unwrap().seq, 0);
    for stream in at_the_end.iter_mut().chain([&mut neighbour]) {
        assert!(futures::poll!(stream.next()).is_pending());
    }
    commit(&*store, vec![write(publish("t", "last", vec![status_event("last")]))]).await;
    let last = soon(join_all(at_the_end.iter_mut().map(StreamExt::next))).await;
    assert!(last.into_iter().all(|entry| entry.unwrap().unwrap().seq == 2));
    let not_polled = store.follow(&"t".into(), Some(2));
    for stream in &mut at_the_end {
        assert!(futures::poll!(stream.next()).is_pending());
    }
    commit(&*store, vec![delete("t", DeleteWhen::Always)]).await;
    let mut next_life = store.follow(&"t".into(), None);
    whole_task(&*store, "t", TaskState::Working).await;
    for rest in soon(join_all(at_the_end.into_iter().map(StreamExt::collect::<Vec<_>>))).await {
        assert!(rest.is_empty(), "{rest:?}");
    }
    assert!(soon(not_polled.collect::<Vec<_>>()).await.is_empty());
    let seen: Vec<_> = soon(behind.collect::<Vec<_>>()).await;
    assert!(seen.iter().all(|entry| matches!(entry, Ok(entry) if entry.seq > 0)), "{seen:?}");
    for n in 0..2 {
        assert_eq!(soon(next_life.next()).await.unwrap().unwrap().seq, n);
    }
    commit(&*store, vec![write(publish("u", "more", vec![status_event("more")]))]).await;
    assert_eq!(soon(neighbour.next()).await.unwrap().unwrap().seq, 2);
}

/// The tasks in the states that are asked for, older than asked, oldest first, in pages that miss and repeat nothing.
pub async fn the_oldest_tasks_come_in_pages(home: &dyn StoreHome) {
    let store = home.open().await;
    let tasks = [
        ("d", TaskState::Completed, 30),
        ("b", TaskState::Failed, 10),
        ("a", TaskState::Working, 5),
        ("c", TaskState::Completed, 10),
        ("f", TaskState::Canceled, 50),
        ("e", TaskState::Rejected, 40),
    ];
    for (task, state, status_at) in tasks {
        commit(&*store, vec![put_task(record(task, "c", state, status_at, &["ann"]))]).await;
    }
    commit(&*store, vec![put_block("z", &Block::new("no task"))]).await;
    let terminal: Vec<_> = TaskState::ALL.into_iter().filter(|state| state.is_terminal()).collect();
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let query = OldestTasks { states: terminal.clone(), before: at(50), after: after.clone(), limit: 2 };
        let page = store.oldest_tasks(query).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        pages.push(page.into_iter().map(|cursor| cursor.task_id.to_string()).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec!["b", "c"], vec!["d", "e"]]);
    let waiting = oldest(&*store, vec![TaskState::Working], None, 9).await;
    assert_eq!(waiting, [TaskCursor { status_at: at(5), task_id: "a".into() }]);
    assert!(oldest(&*store, Vec::new(), None, 9).await.is_empty());
    assert!(oldest(&*store, terminal, None, 0).await.is_empty());
}

/// The census follows what is written and deleted.
pub async fn a_census_counts_what_is_there(home: &dyn StoreHome) {
    let store = home.open().await;
    assert_eq!(store.census().await.unwrap(), Census::default());
    for (task, state) in [("t", TaskState::Working), ("u", TaskState::Working), ("v", TaskState::Failed)] {
        whole_task(&*store, task, state).await;
    }
    commit(&*store, vec![announce("t", "b"), timer("u", "s", 9)]).await;
    let expected = Census {
        tasks: [(TaskState::Working, 2), (TaskState::Failed, 1)].into(),
        activities: 4,
        timers: 4,
        records: RecordKind::ALL.map(|kind| (kind, 3)).into(),
    };
    assert_eq!(store.census().await.unwrap(), expected);
    commit(&*store, ["t", "u", "v"].map(|task| delete(task, DeleteWhen::Always)).into()).await;
    assert_eq!(store.census().await.unwrap(), Census { tasks: BTreeMap::new(), ..Census::default() });
}
