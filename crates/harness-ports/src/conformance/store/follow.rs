//! Following a log: the past, the present, and the moment between.

use std::sync::Arc;

use futures::{StreamExt, future::join_all};
use harness_model::{LogEntry, TaskId};
use tokio::task::JoinSet;

use super::{
    StoreHome,
    fixtures::{commit, publish, seqs, soon, status_event, write},
};
use crate::{LogStream, Store};

/// More entries than any store will want to keep in memory for one task.
const ENTRIES: u64 = 1_500;
const PUBLISHERS: u64 = 5;

/// Publishes `ENTRIES` entries, one to three at a time, from several publishers.
async fn publish_all(store: Arc<dyn Store>, task: &'static str) {
    let mut publishers = JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let store = Arc::clone(&store);
        publishers.spawn(async move {
            let (mut left, mut round) = (ENTRIES / PUBLISHERS, 0);
            while left > 0 {
                let events = left.min(1 + round % 3);
                let texts = (0..events).map(|n| status_event(&format!("{publisher}-{round}-{n}")));
                let publish = publish(task, &format!("{publisher}-{round}"), texts.collect());
                commit(&*store, vec![write(publish)]).await;
                left -= events;
                round += 1;
            }
        });
    }
    publishers.join_all().await;
}

/// Reads until the entry with this number, pausing for others after each `pause_every`-th entry.
async fn read_until(mut stream: LogStream, last: u64, pause_every: u64) -> Vec<Arc<LogEntry>> {
    let mut entries = Vec::new();
    loop {
        let entry = stream.next().await.unwrap().unwrap();
        let seq = entry.seq;
        entries.push(entry);
        if seq >= last {
            return entries;
        }
        if seq % pause_every == 0 {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Followers that start at any time, from any cursor, and read at any speed see every entry after the cursor once.
pub async fn followers_of_every_speed_see_every_entry_once(home: &dyn StoreHome) {
    let store = home.open().await;
    let mut publisher = JoinSet::new();
    publisher.spawn(publish_all(Arc::clone(&store), "t"));
    let mut followers = JoinSet::new();
    let mut pace = store.follow(&"t".into(), None);
    for n in 0..40_u64 {
        // The next follower starts when one more part of the log is there.
        while soon(pace.next()).await.unwrap().unwrap().seq < n * (ENTRIES - 1) / 40 {}
        let reached = n * (ENTRIES - 1) / 40;
        let after = [None, Some(reached), Some(n), Some(reached + 20)][n as usize % 4];
        let (stream, pause_every) = (store.follow(&"t".into(), after), [1, 7, ENTRIES][n as usize % 3]);
        followers.spawn(async move { (after, read_until(stream, ENTRIES - 1, pause_every).await) });
    }
    soon(publisher.join_all()).await;
    let log: Vec<_> =
        store.log(&"t".into(), None, usize::MAX).await.unwrap().into_iter().map(Arc::new).collect();
    assert_eq!(log.len() as u64, ENTRIES);
    for (after, entries) in soon(followers.join_all()).await {
        let start = after.map_or(0, |after| usize::try_from(after).unwrap() + 1);
        assert_eq!(seqs(&entries), seqs(&log[start..]), "from {after:?}");
        assert_eq!(entries, log[start..], "from {after:?}");
    }
}

/// A follower that goes away after any number of entries and comes back with its cursor misses and repeats nothing,
/// also when it was the only one.
pub async fn a_follower_that_comes_back_misses_nothing(home: &dyn StoreHome) {
    let store = home.open().await;
    let mut publisher = JoinSet::new();
    publisher.spawn(publish_all(Arc::clone(&store), "t"));
    let (mut after, mut seen, mut stay) = (None, Vec::new(), 0);
    while after != Some(ENTRIES - 1) {
        let mut stream = store.follow(&"t".into(), after);
        stay = stay % 17 + 1;
        for _ in 0..stay {
            if after == Some(ENTRIES - 1) {
                break;
            }
            let entry = soon(stream.next()).await.unwrap().unwrap();
            after = Some(entry.seq);
            seen.push(entry.seq);
        }
    }
    assert_eq!(seen, (0..ENTRIES).collect::<Vec<_>>());
    soon(publisher.join_all()).await;
}

/// Followers that wait at the end of a log, or for a task that does not exist yet, are woken by the next entry; one
/// that starts beyond the end waits for its place.
pub async fn an_idle_follower_is_woken(home: &dyn StoreHome) {
    let store = home.open().await;
    let task = TaskId::from("t");
    let mut streams: Vec<_> = (0..20).map(|_| store.follow(&task, None)).collect();
    let mut ahead = store.follow(&task, Some(1));
    for stream in &mut streams {
        assert!(futures::poll!(stream.next()).is_pending());
    }
    for n in 0..4_u64 {
        commit(&*store, vec![write(publish("t", &n.to_string(), vec![status_event("x")]))]).await;
        let next = soon(join_all(streams.iter_mut().map(StreamExt::next))).await;
        assert!(next.into_iter().all(|entry| entry.unwrap().unwrap().seq == n));
        let late = soon(store.follow(&task, n.checked_sub(1)).next()).await.unwrap().unwrap();
        assert_eq!(late.seq, n);
    }
    assert_eq!(soon(ahead.next()).await.unwrap().unwrap().seq, 2);
}

/// Entries reach the followers of their own task only, also when one batch publishes to several.
pub async fn followers_of_many_tasks_are_kept_apart(home: &dyn StoreHome) {
    let store = home.open().await;
    let names = ["a", "b", "c"];
    let streams: Vec<_> = names.iter().map(|name| store.follow(&(*name).into(), None)).collect();
    let mut publisher = JoinSet::new();
    let writer = Arc::clone(&store);
    publisher.spawn(async move {
        for n in 0..100 {
            let writes = ["a", "b", "c", "a"]
                .iter()
                .enumerate()
                .map(|(index, name)| write(publish(name, &format!("{n}-{index}"), vec![status_event(name)])));
            commit(&*writer, writes.collect()).await;
        }
    });
    let entries =
        soon(join_all(streams.into_iter().map(|stream| stream.take(100).collect::<Vec<_>>()))).await;
    for (name, entries) in names.iter().zip(entries) {
        for (n, entry) in entries.into_iter().enumerate() {
            let entry = entry.unwrap();
            assert_eq!((entry.seq, super::fixtures::text_of(&entry)), (n as u64, *name));
        }
    }
    soon(publisher.join_all()).await;
}
