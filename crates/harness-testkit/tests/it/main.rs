//! The store in memory keeps the same contract as the real ones, so that what is tested over it holds over them; and
//! the servers for tests start and end.

mod postgres_server;

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use harness_ports::{Store, conformance::store::StoreHome};
use harness_testkit::MemoryStore;

/// A store that lives as long as the case.
struct Home(Arc<MemoryStore>);

impl StoreHome for Home {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let store: Arc<dyn Store> = self.0.reopen();
        async move { store }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

harness_ports::store_conformance! { Home(MemoryStore::new()) }
