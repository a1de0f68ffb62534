//! Batches: whole or not at all, conditions, and what a restart keeps.

use std::sync::Arc;

use futures::future::join_all;
use harness_model::{BlockRef, TaskEvent, TaskId, TaskState, WorkflowId};
use serde_json::json;

use super::{
    StoreHome,
    fixtures::{
        activity, announce, append, commit, create, is_conflict, journal_event, publish, put_block, put_task,
        record, record_delivery, save_snapshot, soon, status_event, text_of, timer, try_commit, write,
    },
};
use crate::{Block, Record, RecordKind, Store, TaskFields, Write, WriteBatch};

/// A batch whose last condition fails leaves nothing behind, whatever came before it.
pub async fn batches_are_atomic(home: &dyn StoreHome) {
    let store = home.open().await;
    commit(&*store, vec![create("taken")]).await;
    let block = Block::new("content");
    let spoiled = vec![
        put_block("w", &block),
        create("w"),
        append("w", 0),
        announce("w", "a"),
        timer("w", "t", 5),
        record_delivery("w", "key", None),
        write(publish("w", "k", vec![TaskEvent::TaskCreated])),
        put_task(record("w", "c", TaskState::Working, 5, &["ann"])),
        create("taken"),
    ];
    let result = try_commit(&*store, spoiled).await;
    assert!(is_conflict(&result), "{result:?}");
    let (workflow, task) = (WorkflowId::from("w"), TaskId::from("w"));
    assert_eq!(store.block(&block.reference.id).await.unwrap(), None);
    assert!(store.workflow(&workflow).await.unwrap().is_none());
    assert!(store.workflows_with_activities(None, 10).await.unwrap().is_empty());
    assert!(store.next_timers(10).await.unwrap().is_empty());
    assert_eq!(store.delivery(&workflow, "key").await.unwrap(), None);
    assert!(store.log(&task, None, 10).await.unwrap().is_empty());
    assert_eq!(store.task(&task, TaskFields::ALL).await.unwrap(), None);
    commit(&*store, vec![create("w"), append("w", 0), record_delivery("w", "key", None)]).await;
}

/// Each condition of a write is checked.
pub async fn conditions_are_checked(home: &dyn StoreHome) {
    let store = home.open().await;
    commit(&*store, vec![create("w"), append("w", 0), append("w", 1)]).await;
    commit(&*store, vec![record_delivery("w", "key", Some(1))]).await;
    let refused =
        [create("w"), append("w", 1), append("w", 3), append("nobody", 0), record_delivery("w", "key", None)];
    for write in refused {
        let result = try_commit(&*store, vec![write.clone()]).await;
        assert!(is_conflict(&result), "{write:?} gave {result:?}");
    }
    commit(&*store, vec![append("w", 2)]).await;
    commit(&*store, vec![Write::CloseWorkflow { workflow_id: "w".into() }]).await;
    let stored = store.workflow(&"w".into()).await.unwrap().unwrap();
    assert_eq!((stored.next_seq, stored.closed, stored.tail.len()), (3, true, 3));
    assert_eq!(store.delivery(&"w".into(), "key").await.unwrap(), Some(Some(1)));
}

/// Of batches that are committed at once, those whose conditions fail do not disturb the others.
pub async fn a_conflict_fails_its_batch_alone(home: &dyn StoreHome) {
    let store = home.open().await;
    commit(&*store, vec![create("taken")]).await;
    let results = join_all((0..200).map(|n| {
        let name = format!("w{n}");
        let mut writes = vec![create(&name), append(&name, 0)];
        if n % 3 == 0 {
            writes.push(create("taken"));
        }
        store.commit(WriteBatch::new(super::fixtures::at(0), writes))
    }))
    .await;
    for (n, result) in results.iter().enumerate() {
        let stored = store.workflow(&format!("w{n}").into()).await.unwrap();
        if n % 3 == 0 {
            assert!(is_conflict(result), "batch {n} gave {result:?}");
            assert!(stored.is_none(), "batch {n} left something");
        } else {
            assert!(result.is_ok(), "batch {n} gave {result:?}");
            assert_eq!(stored.unwrap().next_seq, 1);
        }
    }
}

/// Dropping the future of a commit at any moment leaves a whole batch or none, and the store goes on.
pub async fn a_commit_that_is_given_up_happens_whole_or_not_at_all(home: &dyn StoreHome) {
    let store = home.open().await;
    let mut dropped = Vec::new();
    for n in 0..60_u64 {
        let name = format!("w{n}");
        let writes = vec![
            create(&name),
            append(&name, 0),
            write(publish("t", &name, vec![status_event(&name), status_event(&name)])),
        ];
        let mut commit = store.commit(WriteBatch::new(super::fixtures::at(0), writes));
        // Polled zero, one or two times and then given up.
        for _ in 0..n % 3 {
            if futures::poll!(&mut commit).is_ready() {
                break;
            }
        }
        drop(commit);
        dropped.push(name);
    }
    // Whatever was begun is done once a later batch is.
    commit(&*store, vec![create("last")]).await;
    let log = store.log(&"t".into(), None, 1_000).await.unwrap();
    for (n, name) in dropped.iter().enumerate() {
        let workflow = store.workflow(&name.as_str().into()).await.unwrap();
        let entries = log.iter().filter(|entry| text_of(entry) == name).count();
        let expected = if workflow.is_some() { 2 } else { 0 };
        assert_eq!(entries, expected, "batch {n} is whole or absent");
        assert!(n % 3 != 0 || workflow.is_none(), "batch {n} was never begun");
    }
    assert!(log.iter().enumerate().all(|(n, entry)| entry.seq == n as u64));
    assert!(!log.is_empty(), "what was begun still happens");
}

/// Closing and opening again changes nothing.
pub async fn reopening_keeps_everything(home: &dyn StoreHome) {
    let store = home.open().await;
    let block = Block::new("kept");
    let audit = Record {
        kind: RecordKind::InboxAudit,
        id: "r".to_owned(),
        task_id: "w".into(),
        value: json!({"who": "ann"}),
    };
    commit(
        &*store,
        vec![
            put_block("w", &block),
            create("w"),
            append("w", 0),
            append("w", 1),
            save_snapshot("w", 1, "state"),
            announce("w", "a"),
            timer("w", "t", 7),
            record_delivery("w", "key", None),
            write(publish("w", "k", vec![TaskEvent::TaskCreated, status_event("hello")])),
            put_task(record("w", "c", TaskState::Working, 5, &["ann"])),
            Write::PutRecord(audit.clone()),
        ],
    )
    .await;
    let before = picture(&store, &block.reference).await;
    let install_id = store.install_id().to_owned();
    assert!(install_id.len() == 32 && install_id.bytes().all(|b| b.is_ascii_hexdigit()), "{install_id:?}");
    drop(store);
    home.close().await;
    let store = home.open().await;
    assert_eq!(picture(&store, &block.reference).await, before);
    assert_eq!(store.install_id(), install_id);
    assert_eq!(store.records(RecordKind::InboxAudit, &"w".into(), 9).await.unwrap(), [audit]);
    let stored = store.workflow(&"w".into()).await.unwrap().unwrap();
    assert_eq!((stored.tail, stored.activities), (vec![(1, journal_event(1))], vec![activity("a")]));
    let repeated = write(publish("w", "k", vec![status_event("again")]));
    assert!(commit(&*store, vec![repeated]).await.entries.is_empty(), "publish keys are kept");
    let next = commit(&*store, vec![write(publish("w", "k2", vec![status_event("next")]))]).await;
    assert_eq!(next.entries[0].1.seq, 2, "numbers go on");
}

/// Everything that reads return, as text.
async fn picture(store: &Arc<dyn Store>, block: &BlockRef) -> String {
    let (workflow, task) = (WorkflowId::from("w"), TaskId::from("w"));
    soon(async {
        format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            store.block(&block.id).await.unwrap().unwrap(),
            store.workflow(&workflow).await.unwrap().unwrap(),
            store.workflows_with_activities(None, 9).await.unwrap(),
            store.next_timers(9).await.unwrap(),
            store.delivery(&workflow, "key").await.unwrap().unwrap(),
            store.log(&task, None, 9).await.unwrap(),
            store.task(&task, TaskFields::ALL).await.unwrap().unwrap(),
        )
    })
    .await
}
