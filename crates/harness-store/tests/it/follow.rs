//! Followers and what they hold.

use std::sync::Arc;

use futures::StreamExt;
use harness_ports::{Store, StoreError};
use harness_store::{SqliteStore, StoreOptions};

use crate::home::{Home, entry};

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_every_follower() {
    let home = Home::new();
    let store = home.open_store();
    store.commit(entry("t", "1")).await.unwrap();
    let mut waiting = store.follow(&"t".into(), Some(0));
    let mut never_polled = store.follow(&"u".into(), None);
    assert!(futures::poll!(waiting.next()).is_pending());
    store.close().await;
    let mut late = store.follow(&"t".into(), Some(0));
    for stream in [&mut waiting, &mut never_polled, &mut late] {
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_outlives_the_store_without_holding_its_file() {
    let home = Home::new();
    let store = home.open_store();
    let mut stream = store.follow(&"t".into(), None);
    drop(store);
    home.open_store().commit(entry("t", "1")).await.unwrap();
    assert!(stream.next().await.unwrap().is_err());
}

/// With one connection for everybody, a thousand followers are served from memory once they have caught up.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_followers_share_one_reader() {
    let home = Home::new();
    let options = StoreOptions { readers: 1, ..StoreOptions::new(home.path()) };
    let store: Arc<SqliteStore> = SqliteStore::open(options).unwrap();
    store.commit(entry("t", "0")).await.unwrap();
    let mut streams: Vec<_> = (0..1_000).map(|_| store.follow(&"t".into(), Some(0))).collect();
    for stream in &mut streams {
        assert!(futures::poll!(stream.next()).is_pending());
    }
    for n in 1..4_u64 {
        store.commit(entry("t", &n.to_string())).await.unwrap();
        for stream in &mut streams {
            assert_eq!(stream.next().await.unwrap().unwrap().seq, n);
        }
    }
}
