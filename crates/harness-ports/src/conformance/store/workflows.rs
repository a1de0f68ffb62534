//! What an engine keeps: snapshots, activities, timers, deliveries.

use bytes::Bytes;
use harness_model::WorkflowId;

use super::{
    StoreHome,
    fixtures::{
        activity, announce, append, at, commit, create, journal_event, record_delivery, save_snapshot, timer,
        workflow,
    },
};
use crate::{StoredTimer, Write};

/// The newest snapshot replaces the one before, and the tail holds only what it does not include.
pub async fn snapshots_replace_and_shorten_the_tail(home: &dyn StoreHome) {
    let store = home.open().await;
    let id = WorkflowId::from("w");
    assert!(store.workflow(&id).await.unwrap().is_none());
    commit(&*store, vec![create("w"), append("w", 0), append("w", 1), append("w", 2)]).await;
    let stored = store.workflow(&id).await.unwrap().unwrap();
    assert_eq!((stored.workflow_type.as_str(), stored.closed, stored.snapshot), ("test.v1", false, None));
    assert_eq!(stored.tail, (0..3).map(|n| (n, journal_event(n))).collect::<Vec<_>>());
    commit(&*store, vec![save_snapshot("w", 2, "two")]).await;
    commit(&*store, vec![append("w", 3), save_snapshot("w", 4, "four"), append("w", 4)]).await;
    let stored = store.workflow(&id).await.unwrap().unwrap();
    assert_eq!(stored.snapshot, Some((4, Bytes::from_static(b"four"))));
    assert_eq!((stored.tail, stored.next_seq), (vec![(4, journal_event(4))], 5));
    commit(&*store, vec![save_snapshot("w", 5, "five")]).await;
    let stored = store.workflow(&id).await.unwrap().unwrap();
    assert_eq!(
        (stored.tail.len(), stored.next_seq),
        (0, 5),
        "the journal goes on after a snapshot of all of it"
    );
}

/// Announced activities are there until they are removed, and lead to their workflows in pages.
pub async fn activities_are_kept_until_removed(home: &dyn StoreHome) {
    let store = home.open().await;
    for n in 0..5 {
        let name = format!("w{n}");
        workflow(&*store, &name).await;
        commit(&*store, vec![announce(&name, "a1"), announce(&name, "a2")]).await;
    }
    workflow(&*store, "idle").await;
    let remove = |workflow: &str, id: &str| Write::RemoveActivity {
        workflow_id: workflow.into(),
        activity_id: id.into(),
    };
    commit(
        &*store,
        vec![remove("w1", "a1"), remove("w1", "a2"), remove("w2", "a1"), remove("w2", "unknown")],
    )
    .await;
    let stored = store.workflow(&"w2".into()).await.unwrap().unwrap();
    assert_eq!(stored.activities, [activity("a2")]);
    let first = store.workflows_with_activities(None, 2).await.unwrap();
    assert_eq!(first, [WorkflowId::from("w0"), WorkflowId::from("w2")]);
    let second = store.workflows_with_activities(first.last(), 9).await.unwrap();
    assert_eq!(second, [WorkflowId::from("w3"), WorkflowId::from("w4")]);
    assert!(store.workflows_with_activities(second.last(), 9).await.unwrap().is_empty());
}

/// Timers come by due time; starting one again moves it; removing one that is gone is fine.
pub async fn timers_come_in_the_order_they_are_due(home: &dyn StoreHome) {
    let store = home.open().await;
    workflow(&*store, "w").await;
    workflow(&*store, "v").await;
    commit(&*store, vec![timer("w", "a", 30), timer("w", "b", 10), timer("v", "a", 20), timer("v", "z", -5)])
        .await;
    let stored = |workflow: &str, id: &str, due: i64| StoredTimer {
        workflow_id: workflow.into(),
        timer_id: id.into(),
        due_at: at(due),
    };
    let due = store.next_timers(3).await.unwrap();
    assert_eq!(due, [stored("v", "z", -5), stored("w", "b", 10), stored("v", "a", 20)]);
    let remove =
        |workflow: &str, id: &str| Write::RemoveTimer { workflow_id: workflow.into(), timer_id: id.into() };
    commit(&*store, vec![timer("w", "b", 40), remove("v", "z"), remove("v", "unknown")]).await;
    let due = store.next_timers(9).await.unwrap();
    assert_eq!(due, [stored("v", "a", 20), stored("w", "a", 30), stored("w", "b", 40)]);
    assert_eq!(store.timers(&"w".into()).await.unwrap(), [stored("w", "a", 30), stored("w", "b", 40)]);
    assert_eq!(store.timers(&"nobody".into()).await.unwrap(), []);
}

/// A delivery is known with the cursor of its first time, for its workflow only.
pub async fn deliveries_are_known_once(home: &dyn StoreHome) {
    let store = home.open().await;
    let (w, _) = workflow(&*store, "w").await;
    let (v, _) = workflow(&*store, "v").await;
    assert_eq!(store.delivery(&w, "k").await.unwrap(), None);
    commit(&*store, vec![record_delivery("w", "k", None), record_delivery("w", "l", Some(7))]).await;
    assert_eq!(store.delivery(&w, "k").await.unwrap(), Some(None));
    assert_eq!(store.delivery(&w, "l").await.unwrap(), Some(Some(7)));
    assert_eq!(store.delivery(&v, "k").await.unwrap(), None);
    commit(&*store, vec![record_delivery("v", "k", Some(0))]).await;
    assert_eq!(store.delivery(&v, "k").await.unwrap(), Some(Some(0)));
    assert_eq!(store.delivery(&"nobody".into(), "k").await.unwrap(), None);
}
