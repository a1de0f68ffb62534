//! The store's tests.

use std::sync::Arc;

use futures::StreamExt;
use harness_model::{TaskEvent, TaskId, Timestamp};
use harness_ports::{Publish, Store, Write, WriteBatch};
use harness_store::{SqliteStore, StoreOptions};

#[tokio::test(flavor = "multi_thread")]
async fn commits_and_reads() {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<SqliteStore> =
        SqliteStore::open(StoreOptions::new(directory.path().join("store.db"))).unwrap();
    let task_id = TaskId::from("t");
    let mut follow = store.follow(&task_id, None);
    let publish = Publish {
        task_id: task_id.clone(),
        key: "k".into(),
        events: vec![TaskEvent::TaskCreated],
        record: None,
        history: vec![],
    };
    let committed = store
        .commit(WriteBatch::new(Timestamp::from_millis(5), vec![Write::Publish(Box::new(publish))]))
        .await
        .unwrap();
    assert_eq!(committed.entries.len(), 1);
    assert_eq!(follow.next().await.unwrap().unwrap().seq, 0);
    assert_eq!(store.log(&task_id, None, 10).await.unwrap().len(), 1);
    store.close().await;
    assert!(follow.next().await.unwrap().is_err());
}
