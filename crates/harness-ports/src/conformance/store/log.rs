//! The event log: numbers, publish keys, pages.

use std::sync::Arc;

use futures::future::join_all;
use harness_model::{TaskEvent, TaskId, TaskState};
use tokio::task::JoinSet;

use super::{
    StoreHome,
    fixtures::{
        activity, announce, append, at, commit, create, publish, record, save_snapshot, soon, status,
        status_event, text_of, write,
    },
};
use crate::{HistoryAppend, Publish, Store, TaskFields, Write, WriteBatch};

const PUBLISHERS: usize = 16;
const ROUNDS: usize = 15;

/// Many publishers at once: the log has every entry once, without gaps, and each publisher's in its order.
pub async fn entries_are_numbered_without_gaps(home: &dyn StoreHome) {
    let store = home.open().await;
    let mut publishers = JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let store = Arc::clone(&store);
        publishers.spawn(async move {
            let mut entries = Vec::new();
            for round in 0..ROUNDS {
                let texts = (0..=round % 3).map(|n| status_event(&format!("{publisher} {round} {n}")));
                let publish = publish("t", &format!("{publisher}-{round}"), texts.collect());
                entries.extend(commit(&*store, vec![write(publish)]).await.entries);
            }
            entries
        });
    }
    let mut told: Vec<_> = soon(publishers.join_all()).await.into_iter().flatten().collect();
    assert!(told.iter().all(|(task, _)| *task == TaskId::from("t")));
    told.sort_by_key(|(_, entry)| entry.seq);
    let log = store.log(&"t".into(), None, usize::MAX).await.unwrap();
    assert_eq!(log.len(), PUBLISHERS * ROUNDS * 2);
    for (n, (entry, (_, told))) in log.iter().zip(&told).enumerate() {
        assert_eq!(entry.seq, n as u64);
        assert_eq!(entry, &**told, "the log holds what the commit said");
    }
    for publisher in 0..PUBLISHERS {
        let prefix = format!("{publisher} ");
        let own: Vec<_> = log.iter().map(text_of).filter(|text| text.starts_with(&prefix)).collect();
        let expected: Vec<_> = (0..ROUNDS)
            .flat_map(|round| (0..=round % 3).map(move |n| format!("{publisher} {round} {n}")))
            .collect();
        assert_eq!(own, expected);
    }
}

/// The second publication with a key changes nothing, alone or beside other writes; keys belong to their task.
pub async fn a_publish_key_works_once(home: &dyn StoreHome) {
    let store = home.open().await;
    let once = |text: &str| {
        let mut publish = publish("t", "key", vec![TaskEvent::TaskCreated, status_event(text)]);
        publish.record = Some(record("t", text, TaskState::Working, 1, &[]));
        publish.history = vec![HistoryAppend::Status { event: 1 }];
        publish
    };
    let all = (0..20).map(|n| store.commit(WriteBatch::new(at(0), vec![write(once(&format!("c{n}")))])));
    let entries: Vec<_> = join_all(all)
        .await
        .into_iter()
        .map(|committed| committed.unwrap().entries)
        .filter(|e| !e.is_empty())
        .collect();
    assert_eq!(entries.len(), 1, "one of them published");
    let winner = text_of(&entries[0][1].1).to_owned();
    let beside = vec![write(once("late")), write(publish("t", "other", vec![status_event("beside")]))];
    assert_eq!(commit(&*store, beside).await.entries.len(), 1, "the rest of the batch counts");
    assert_eq!(
        commit(&*store, vec![write(publish("u", "key", vec![status_event("u")]))]).await.entries.len(),
        1
    );
    let task = store.task(&"t".into(), TaskFields::ALL).await.unwrap().unwrap();
    assert_eq!((task.record.context_id.as_str(), task.history.len()), (winner.as_str(), 1));
    assert_eq!(task.last_seq, 2);
}

/// What arrives after the end of a task without a record of its own changes nothing.
pub async fn nothing_follows_the_end_of_a_task(home: &dyn StoreHome) {
    let store = home.open().await;
    let mut end = publish("t", "end", vec![status_event("end")]);
    end.record = Some(record("t", "c", TaskState::Canceled, 1, &[]));
    commit(&*store, vec![write(publish("t", "words", vec![status_event("words")])), write(end.clone())])
        .await;
    let late = commit(&*store, vec![write(publish("t", "late", vec![status_event("late")]))]).await;
    assert!(late.entries.is_empty());
    end.key = "again".to_owned();
    assert_eq!(
        commit(&*store, vec![write(end)]).await.entries.len(),
        1,
        "the workflow itself may still publish"
    );
    let log = store.log(&"t".into(), None, 10).await.unwrap();
    assert_eq!(log.iter().map(text_of).collect::<Vec<_>>(), ["words", "end", "end"]);
}

/// Pages of a log meet without a gap.
pub async fn logs_are_read_in_pages(home: &dyn StoreHome) {
    let store = home.open().await;
    let task = TaskId::from("t");
    assert!(store.log(&task, None, 10).await.unwrap().is_empty());
    let events = (0..25).map(|n| status_event(&n.to_string())).collect();
    let batch = WriteBatch::new(at(77), vec![write(publish("t", "k", events))]);
    store.commit(batch).await.unwrap();
    let (mut after, mut texts) = (None, Vec::new());
    loop {
        let page = store.log(&task, after, 10).await.unwrap();
        assert!(page.len() <= 10);
        let Some(last) = page.last() else { break };
        after = Some(last.seq);
        assert!(page.iter().all(|entry| entry.at == at(77)), "entries carry the time of their batch");
        texts.extend(page.iter().map(|entry| text_of(entry).to_owned()));
    }
    assert_eq!(texts, (0..25).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(store.log(&task, Some(u64::MAX), 10).await.unwrap().is_empty());
    assert!(store.log(&task, None, 0).await.unwrap().is_empty());
}

/// While batches are committed, no reader sees a part of one: neither of a task nor of a workflow.
pub async fn readers_see_whole_batches(home: &dyn StoreHome) {
    let store = home.open().await;
    commit(&*store, whole(0)).await;
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let of_task = Arc::clone(&store);
        readers.spawn(async move { while whole_task(&*of_task).await < BATCHES {} });
        let of_workflow = Arc::clone(&store);
        readers.spawn(async move { while whole_workflow(&*of_workflow).await < BATCHES {} });
    }
    for n in 1..=BATCHES {
        commit(&*store, whole(n)).await;
    }
    soon(readers.join_all()).await;
}

const BATCHES: u64 = 150;

/// Two entries, one of them with words, and a record that counts; an event, a snapshot of it, and one activity.
fn whole(n: u64) -> Vec<Write> {
    let text = n.to_string();
    let status_at = i64::try_from(n).unwrap();
    let mut writes = vec![
        write(Publish {
            task_id: "t".into(),
            key: text.clone(),
            events: vec![status_event("first"), TaskEvent::StatusChanged(status(TaskState::Working, &text))],
            record: Some(record("t", "c", TaskState::Working, status_at, &[])),
            history: vec![HistoryAppend::Status { event: 1 }],
        }),
        append("t", n),
        save_snapshot("t", n + 1, "state"),
        announce("t", &text),
    ];
    match n.checked_sub(1) {
        None => writes.insert(0, create("t")),
        Some(before) => writes
            .push(Write::RemoveActivity { workflow_id: "t".into(), activity_id: before.to_string().into() }),
    }
    writes
}

/// Checks the task and returns the number of the newest batch in it.
async fn whole_task(store: &dyn Store) -> u64 {
    let task = store.task(&"t".into(), TaskFields::ALL).await.unwrap().unwrap();
    let newest = u64::try_from(task.record.status_at.as_millis()).unwrap();
    assert_eq!((task.last_seq, task.status_seq), (newest * 2 + 1, newest * 2 + 1));
    assert_eq!(task.history.len() as u64, newest + 1);
    assert_eq!(store.log(&"t".into(), None, usize::MAX).await.unwrap().len() % 2, 0);
    newest
}

/// Checks the workflow and returns the number of the newest batch in it.
async fn whole_workflow(store: &dyn Store) -> u64 {
    let workflow = store.workflow(&"t".into()).await.unwrap().unwrap();
    let newest = workflow.next_seq - 1;
    assert_eq!(workflow.activities, [activity(&newest.to_string())]);
    assert_eq!((workflow.snapshot.unwrap().0, workflow.tail.len()), (newest + 1, 0));
    newest
}
