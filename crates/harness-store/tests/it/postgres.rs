//! The store on a PostgreSQL server: the suite of the port, and what only a server can do.

mod several;
mod trouble;

use std::sync::{Arc, Mutex};

use futures::{FutureExt, future::BoxFuture};
use harness_ports::{Store, conformance::store::StoreHome};
use harness_store::{PostgresOptions, PostgresStore, PostgresTls};
use harness_testkit::PostgresServer;

/// A server of its own for the store of one test.
struct ServerHome {
    server: PostgresServer,
    open: Mutex<Option<Arc<PostgresStore>>>,
}

impl ServerHome {
    /// `None` when the server is not installed; that was said.
    async fn start() -> Option<Self> {
        Some(Self { server: PostgresServer::start().await?, open: Mutex::default() })
    }

    fn options(&self) -> PostgresOptions {
        options(&self.server)
    }

    async fn open_store(&self) -> Arc<PostgresStore> {
        PostgresStore::open(self.options()).await.unwrap()
    }
}

fn options(server: &PostgresServer) -> PostgresOptions {
    PostgresOptions {
        port: server.port(),
        tls: PostgresTls::Disable,
        ..PostgresOptions::new(PostgresServer::HOST, PostgresServer::USER, PostgresServer::USER)
    }
}

impl StoreHome for ServerHome {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        async {
            let store = self.open_store().await;
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

harness_ports::store_conformance! {
    match ServerHome::start().await {
        Some(home) => home,
        None => return,
    }
}
