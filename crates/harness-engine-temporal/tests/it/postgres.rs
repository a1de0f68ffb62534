//! The suite over PostgreSQL, as one of several workers.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use harness_engine_temporal::Hands;
use harness_ports::{Store, conformance::store::StoreHome};
use harness_store::{PostgresOptions, PostgresStore, PostgresTls};
use harness_testkit::PostgresServer;

use crate::lab::TemporalLab;

struct PostgresHome {
    port: u16,
    open: Mutex<Option<Arc<PostgresStore>>>,
}

impl StoreHome for PostgresHome {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let options = PostgresOptions {
            port: self.port,
            tls: PostgresTls::Disable,
            ..PostgresOptions::new(PostgresServer::HOST, PostgresServer::USER, PostgresServer::USER)
        };
        Box::pin(async move {
            let store = PostgresStore::open(options).await.unwrap();
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&store));
            store as _
        })
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

/// `None` when the server is not installed; that was said.
async fn lab() -> Option<(TemporalLab, PostgresServer)> {
    let server = PostgresServer::start().await?;
    let home = PostgresHome { port: server.port(), open: Mutex::default() };
    Some((TemporalLab::new(home, Hands::Worker).await?, server))
}

harness_ports::engine_conformance! { lab().await }
