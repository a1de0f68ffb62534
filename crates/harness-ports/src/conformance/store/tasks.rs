//! A task as reads return it: status, history, artifacts.

use harness_model::{
    BlockRef, Content, ContentBody, HistoryEntry, StatusChange, TaskEvent, TaskId, TaskState,
};

use super::{
    StoreHome,
    fixtures::{artifact, commit, publish, record, status, status_event, write},
};
use crate::{HistoryAppend, Publish, TaskFields, Write};

/// The snapshot names the entry that made the status what it is, and the newest one.
pub async fn the_status_knows_its_entry(home: &dyn StoreHome) {
    let store = home.open().await;
    let task = TaskId::from("t");
    let chunk = || TaskEvent::ArtifactChanged(artifact("a", "x", true));
    let mut created = publish("t", "0", vec![TaskEvent::TaskCreated]);
    assert_eq!(store.task(&task, TaskFields::BARE).await.unwrap(), None);
    created.record = Some(record("t", "c", TaskState::Submitted, 5, &["ann"]));
    commit(&*store, vec![write(created)]).await;
    let now = store.task(&task, TaskFields::BARE).await.unwrap().unwrap();
    assert_eq!((now.status_seq, now.last_seq), (0, 0));
    assert_eq!(now.record, record("t", "c", TaskState::Submitted, 5, &["ann"]));
    commit(
        &*store,
        vec![write(publish("t", "1", vec![chunk(), status_event("v"), status_event("w"), chunk()]))],
    )
    .await;
    let now = store.task(&task, TaskFields::BARE).await.unwrap().unwrap();
    assert_eq!((now.status_seq, now.last_seq), (3, 4));
    let mut quiet = publish("t", "2", vec![chunk()]);
    quiet.record = Some(record("t", "c", TaskState::Working, 6, &["ann", "ben"]));
    commit(&*store, vec![write(quiet)]).await;
    let now = store.task(&task, TaskFields::BARE).await.unwrap().unwrap();
    assert_eq!((now.status_seq, now.last_seq), (3, 5), "a record alone is no new status entry");
    assert_eq!(now.record.extension.participants.len(), 2);
    assert!(now.artifacts.is_empty() && now.history.is_empty());
}

/// History holds messages and the agent's words in order; a read returns the newest, oldest first.
pub async fn history_returns_the_newest(home: &dyn StoreHome) {
    let store = home.open().await;
    let block = |n: usize| BlockRef::to(n.to_string().as_bytes());
    let said = |n: usize| status(TaskState::InputRequired, &format!("answer {n}"));
    for n in 0..4 {
        commit(&*store, vec![turn(n, block(n), said(n))]).await;
    }
    let message = |n: usize| HistoryEntry::Message { message_id: format!("m{n}").into(), block: block(n) };
    let answer = |n: usize, seq: u64| HistoryEntry::Status { seq, status: said(n) };
    let expected: Vec<_> = (0..4).flat_map(|n| [message(n), answer(n, 2 * n as u64 + 1)]).collect();
    let read = async |history| {
        let fields = TaskFields { history, artifacts: false };
        store.task(&"t".into(), fields).await.unwrap().unwrap().history
    };
    assert_eq!(read(None).await, expected);
    assert_eq!(read(Some(100)).await, expected);
    assert_eq!(read(Some(3)).await, expected[5..]);
    assert_eq!(read(Some(0)).await, []);
    let mut wrong = publish("t", "wrong", vec![TaskEvent::TaskCreated]);
    wrong.history = vec![HistoryAppend::Status { event: 0 }];
    assert!(
        super::fixtures::try_commit(&*store, vec![write(wrong)]).await.is_err(),
        "only a status has words"
    );
}

/// One message and its answer.
fn turn(n: usize, block: BlockRef, said: StatusChange) -> Write {
    write(Publish {
        task_id: "t".into(),
        key: n.to_string(),
        events: vec![status_event("working"), TaskEvent::StatusChanged(said)],
        record: Some(record("t", "c", TaskState::InputRequired, 1, &[])),
        history: vec![
            HistoryAppend::Message { message_id: format!("m{n}").into(), block },
            HistoryAppend::Status { event: 1 },
        ],
    })
}

/// Artifacts are put together from their chunks, in order of first appearance; a restart forgets the chunks before it.
pub async fn artifacts_are_folded(home: &dyn StoreHome) {
    let store = home.open().await;
    let change = |id: &str, text: &str, append| TaskEvent::ArtifactChanged(artifact(id, text, append));
    let mut first = publish("t", "0", vec![TaskEvent::TaskCreated, change("b", "lost", false)]);
    first.record = Some(record("t", "c", TaskState::Working, 1, &[]));
    commit(&*store, vec![write(first)]).await;
    let more =
        vec![change("a", "1", true), status_event("w"), change("b", "new", false), change("a", "2", true)];
    commit(&*store, vec![write(publish("t", "1", more))]).await;
    let task = store.task(&"t".into(), TaskFields::ALL).await.unwrap().unwrap();
    let folded: Vec<(&str, Vec<&str>)> = task
        .artifacts
        .iter()
        .map(|a| (a.artifact_id.as_str(), a.parts.iter().map(|part| text(&part.body)).collect()))
        .collect();
    assert_eq!(folded, [("b", vec!["new"]), ("a", vec!["1", "2"])]);
    let fields = TaskFields { history: None, artifacts: false };
    assert!(store.task(&"t".into(), fields).await.unwrap().unwrap().artifacts.is_empty());
}

fn text(body: &ContentBody) -> &str {
    match body {
        ContentBody::Text(Content::Inline(text)) => text,
        ContentBody::Text(Content::Block(_))
        | ContentBody::Data(_)
        | ContentBody::Raw(_)
        | ContentBody::Url(_) => panic!("not a text"),
    }
}
