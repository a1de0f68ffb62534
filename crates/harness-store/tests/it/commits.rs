//! Commits as the writer makes them: the hook of crash tests, closing, and the end of the writer.

use std::sync::{Arc, Mutex};

use futures::future::join_all;
use harness_model::Timestamp;
use harness_ports::{Store, StoreError, Write, WriteBatch};
use harness_store::{CommitPhase, SqliteStore, StoreOptions};

use crate::home::{Home, entry};

#[tokio::test(flavor = "multi_thread")]
async fn the_hook_sees_every_batch_before_and_after_it_is_durable() {
    let home = Home::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, path) = (Arc::clone(&seen), home.path());
    let on_commit = move |phase, n| {
        // What another process would find now.
        let connection = rusqlite::Connection::open(&path).unwrap();
        let entries: u64 =
            connection.query_row("SELECT count(*) FROM log", (), |row| row.get::<_, u32>(0)).unwrap().into();
        log.lock().unwrap().push((phase, n, entries));
    };
    let options = StoreOptions { on_commit: Some(Arc::new(on_commit)), ..StoreOptions::new(home.path()) };
    let store = SqliteStore::open(options).unwrap();
    let create = || {
        let write = Write::CreateWorkflow { workflow_id: "w".into(), workflow_type: "test.v1".to_owned() };
        WriteBatch::new(Timestamp::from_millis(0), vec![write])
    };
    store.commit(create()).await.unwrap();
    store.commit(create()).await.expect_err("a batch that fails is no commit");
    for result in join_all((0..20).map(|n| store.commit(entry("t", &n.to_string())))).await {
        result.unwrap();
    }
    let expected = (1..=21_u64).flat_map(|n| {
        let before = n.saturating_sub(2);
        [(CommitPhase::Before, n, before), (CommitPhase::After, n, n - 1)]
    });
    assert_eq!(*seen.lock().unwrap(), expected.collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_writes_what_is_queued() {
    let home = Home::new();
    let store = home.open_store();
    let mut commits: Vec<_> = (0..100).map(|n| store.commit(entry("t", &n.to_string()))).collect();
    for commit in &mut commits {
        assert!(futures::poll!(commit).is_pending());
    }
    store.close().await;
    for commit in commits {
        commit.await.unwrap();
    }
    let after = store.commit(entry("t", "late")).await.unwrap_err();
    assert!(matches!(after, StoreError::Unavailable { .. }), "{after:?}");
    store.log(&"t".into(), None, 1).await.expect_err("a closed store reads nothing");
    store.close().await;
    assert_eq!(home.open_store().log(&"t".into(), None, 999).await.unwrap().len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_callers_than_the_queue_holds_wait_their_turn() {
    let home = Home::new();
    let store = home.open_store();
    let results = join_all((0..3_000).map(|n| store.commit(entry("t", &n.to_string())))).await;
    let mut seqs: Vec<u64> = results.into_iter().map(|result| result.unwrap().entries[0].1.seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (0..3_000).collect::<Vec<_>>());
}

/// A writer that is gone is an error for everybody who waits, never a wait without end.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_writer_is_told_to_everybody() {
    use futures::StreamExt;
    let home = Home::new();
    let on_commit = |_, n| assert!(n < 2, "the writer ends here");
    let options = StoreOptions { on_commit: Some(Arc::new(on_commit)), ..StoreOptions::new(home.path()) };
    let store = SqliteStore::open(options).unwrap();
    store.commit(entry("t", "1")).await.unwrap();
    let mut stream = store.follow(&"t".into(), Some(0));
    assert!(futures::poll!(stream.next()).is_pending());
    for key in ["2", "3"] {
        let error = store.commit(entry("t", key)).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    assert!(stream.next().await.unwrap().is_err());
    assert!(stream.next().await.is_none(), "an error is the end of a stream");
    drop(store);
    assert_eq!(home.open_store().log(&"t".into(), None, 9).await.unwrap().len(), 1);
}
