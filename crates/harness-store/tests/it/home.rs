//! A directory with a store.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use futures::{FutureExt, future::BoxFuture};
use harness_model::{StatusChange, TaskEvent, TaskState, Timestamp};
use harness_ports::{Publish, Store, Write, WriteBatch, conformance::store::StoreHome};
use harness_store::{SqliteStore, StoreOptions};
use tempfile::TempDir;

/// A directory of its own for the store of one test.
pub(crate) struct Home {
    directory: TempDir,
    open: Mutex<Option<Arc<SqliteStore>>>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), open: Mutex::default() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    pub(crate) fn open_store(&self) -> Arc<SqliteStore> {
        SqliteStore::open(StoreOptions::new(self.path())).unwrap()
    }
}

impl StoreHome for Home {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        async {
            let store = self.open_store();
            *self.open.lock().unwrap() = Some(Arc::clone(&store));
            store as Arc<dyn Store>
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            let open = self.open.lock().unwrap().take();
            if let Some(store) = open {
                store.close().await;
            }
        }
        .boxed()
    }
}

/// A batch that publishes one entry.
pub(crate) fn entry(task: &str, key: &str) -> WriteBatch {
    let events = vec![TaskEvent::StatusChanged(StatusChange::to(TaskState::Working))];
    let publish =
        Publish { task_id: task.into(), key: key.to_owned(), events, record: None, history: Vec::new() };
    WriteBatch::new(Timestamp::from_millis(0), vec![Write::Publish(Box::new(publish))])
}
