//! One process alone: a lock that the server holds for as long as a connection lives.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use harness_ports::StoreError;
use sqlx::{Connection, PgConnection};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    connect::{Server, step},
    error,
};

/// How often the lock is asked for at the start, and how long between: a process that was just killed may still hold it.
const TRIES_MAX: u32 = 12;
const TRY_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two looks at whether the lock is still held.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The lock of a schema.
#[derive(Debug)]
pub(super) struct Owner {
    server: Server,
    schema: String,
    /// Holds the lock; `None` once it broke.
    connection: Option<PgConnection>,
    lost: Arc<AtomicBool>,
}

impl Owner {
    /// Takes the lock. `lost` becomes true while another process has it.
    /// Errors: `Locked` when another process has it.
    pub(super) async fn take(
        server: &Server,
        schema: &str,
        lost: Arc<AtomicBool>,
    ) -> Result<Self, StoreError> {
        let mut owner = Self { server: server.clone(), schema: schema.to_owned(), connection: None, lost };
        for _ in 0..TRIES_MAX {
            if owner.try_take().await.map_err(|e| error::server("taking the lock", e))? {
                return Ok(owner);
            }
            sleep(TRY_INTERVAL).await;
        }
        Err(locked(schema))
    }

    async fn try_take(&mut self) -> sqlx::Result<bool> {
        let mut connection = self.server.signals.acquire().await?.detach();
        let sql = "SELECT pg_try_advisory_lock(1953066618, hashtext($1))";
        let taken = step(sqlx::query_scalar(sql).bind(&self.schema).fetch_one(&mut connection)).await?;
        if taken {
            self.connection = Some(connection);
        } else {
            connection.close().await?;
        }
        Ok(taken)
    }

    /// Keeps the lock until it is stopped, and takes it again when its connection breaks.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(LOOK_INTERVAL)).await.is_some() {
            if stop.run_until_cancelled(self.look()).await.is_none() {
                break;
            }
        }
        if let Some(connection) = self.connection.take() {
            // The lock goes with the connection, however it ends.
            step(connection.close()).await.ok();
        }
    }

    async fn look(&mut self) {
        if let Some(connection) = &mut self.connection {
            match step(connection.ping()).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "the lock of the store is taken again"),
            }
            self.connection = None;
        }
        match self.try_take().await {
            Ok(taken) => {
                if self.lost.swap(!taken, Ordering::Relaxed) == taken {
                    tracing::error!(held = taken, "the store changed hands");
                }
            }
            // Whoever cannot reach the server writes nothing either.
            Err(error) => tracing::debug!(%error, "the lock of the store cannot be taken"),
        }
    }
}

/// Another process is alone with the store.
pub(super) fn locked(schema: &str) -> StoreError {
    StoreError::Locked { path: format!("in the PostgreSQL schema {schema}") }
}
