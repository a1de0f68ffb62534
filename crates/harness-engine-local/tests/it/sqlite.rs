//! The suite over SQLite.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use harness_ports::{Store, conformance::store::StoreHome};
use harness_store::{SqliteStore, StoreOptions};
use tempfile::TempDir;

use crate::lab::{LocalLab, usual};

struct SqliteHome {
    path: PathBuf,
    open: Mutex<Option<Arc<SqliteStore>>>,
}

impl StoreHome for SqliteHome {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let store = SqliteStore::open(StoreOptions::new(&self.path)).unwrap();
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&store));
        Box::pin(async { store as _ })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let store = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(store) = store {
                store.close().await;
            }
        })
    }
}

fn lab() -> (LocalLab, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let home = SqliteHome { path: directory.path().join("store.db"), open: Mutex::default() };
    (LocalLab::new(home, usual()), directory)
}

harness_ports::engine_conformance! { Some(lab()) }
