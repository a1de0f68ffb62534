//! The suite over a store in memory, as one of several workers.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use harness_engine_temporal::Hands;
use harness_ports::{Store, conformance::store::StoreHome};
use harness_testkit::MemoryStore;

use crate::lab::TemporalLab;

/// Keeps a handle between two lives, as a disk keeps a file.
#[derive(Default)]
pub(crate) struct MemoryHome(Mutex<Option<Arc<MemoryStore>>>);

impl StoreHome for MemoryHome {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let store = kept.get_or_insert_with(MemoryStore::new).reopen();
        Box::pin(async { store as _ })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

// As one of several workers: what a dead one had begun is found out by its silence. Over SQLite it is the only one.
harness_ports::engine_conformance! {
    TemporalLab::new(MemoryHome::default(), Hands::Worker).await.map(|lab| (lab, ()))
}
