//! Connections: how they are made, how many there are, and what happens when one breaks.

use std::{future::Future, time::Duration};

use harness_ports::{StoreError, TaskGroup};
use sqlx::{
    ConnectOptions, Connection, PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgArguments, PgConnectOptions, PgPoolOptions, PgRow, PgSslMode},
    query::Query,
};
use tokio::{sync::oneshot, time::timeout};

use super::{
    error::{self, Kind},
    options::{PostgresOptions, PostgresTls},
};
use crate::error::closed;

/// How long one statement, or a whole transaction without its commit, may take. The server gives up a little earlier.
pub(super) const STEP_MAX: Duration = Duration::from_secs(35);
/// Settings of every connection. A process that hangs, or a network that swallows it, must not hold locks for long.
const SETTINGS: [(&str, &str); 8] = [
    ("tcp_keepalives_idle", "15"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("statement_timeout", "30s"),
    ("lock_timeout", "15s"),
    ("idle_in_transaction_session_timeout", "30s"),
    ("default_transaction_isolation", "read committed"),
    ("client_min_messages", "warning"),
];
/// How long reads, and then connections, may take to end.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// A connection that was idle for this long is tried before it is used.
const IDLE_UNTRIED: Duration = Duration::from_secs(1);
/// Connections that are idle for this long are closed.
const IDLE_MAX: Duration = Duration::from_secs(300);
/// Statements a connection keeps prepared; there are fewer here.
const STATEMENTS: usize = 64;
/// Connections besides those that read and write: one that listens and one that tells.
const SIGNAL_CONNECTIONS: u32 = 2;

/// The server, as one process uses it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// For reads and batches.
    pub(super) pool: PgPool,
    /// For waking followers. What it writes need not be durable.
    pub(super) signals: PgPool,
    readers: TaskGroup,
}

/// Whether a transaction waits for its flush.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    Waits,
    Trails,
}

impl Server {
    /// Nothing is connected yet.
    pub(super) fn new(options: &PostgresOptions) -> Self {
        Self {
            pool: pool(options, options.pool.max(2), Flush::Waits),
            signals: pool(options, SIGNAL_CONNECTIONS, Flush::Trails),
            readers: TaskGroup::new(),
        }
    }

    /// A connection to read or write with.
    pub(super) async fn connection(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        self.pool.acquire().await
    }

    /// A connection that was tried, after one broke: others of the pool may be broken as well.
    pub(super) async fn tried_connection(&self) -> sqlx::Result<PoolConnection<Postgres>> {
        for _ in 0..self.pool.options().get_max_connections() {
            let mut connection = self.pool.acquire().await?;
            match timeout(STEP_MAX, connection.ping()).await {
                Ok(Ok(())) => return Ok(connection),
                Ok(Err(_)) | Err(_) => connection.close_on_drop(),
            }
        }
        self.pool.acquire().await
    }

    /// Runs a future on its own, so that it ends soon however slow its caller is: nobody may hold a connection, or a
    /// turn that others wait for, while nobody asks him to go on. Dropped with the caller.
    /// Errors: the runtime ends.
    pub(super) async fn carried<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (mut answer, answered) = oneshot::channel();
        self.readers.spawn(async move {
            tokio::select! {
                biased;
                () = answer.closed() => {}
                value = future => drop(answer.send(value)),
            }
        });
        answered.await.map_err(|_| closed())?
    }

    /// The rows of one statement that only reads, over one state of the database. It is asked again, once, when the
    /// connection breaks.
    pub(super) async fn rows(
        &self,
        what: &'static str,
        query: impl Fn() -> Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let (first, second, server) = (query(), query(), self.clone());
        self.carried(async move {
            let rows = match rows_over(server.connection().await, first).await {
                Err(e) if error::kind(&e) == Kind::Lost => {
                    rows_over(server.tried_connection().await, second).await
                }
                rows => rows,
            };
            rows.map_err(|e| error::server(what, e))
        })
        .await
    }

    /// Closes every connection. Reads that run end first.
    pub(super) async fn close(&self) {
        self.readers.shutdown(CLOSE_GRACE).await;
        let closed = async { tokio::join!(self.signals.close(), self.pool.close()) };
        if timeout(CLOSE_GRACE, closed).await.is_err() {
            tracing::warn!("the connections to the server do not end; they are left to it");
        }
    }
}

async fn rows_over(
    connection: sqlx::Result<PoolConnection<Postgres>>,
    query: Query<'static, Postgres, PgArguments>,
) -> sqlx::Result<Vec<PgRow>> {
    let mut connection = connection?;
    let rows = step(query.fetch_all(&mut *connection)).await;
    if let Err(e) = &rows
        && error::kind(e) == Kind::Lost
    {
        connection.close_on_drop();
    }
    rows
}

/// Bounds what the server may take.
pub(super) async fn step<T>(future: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    timeout(STEP_MAX, future).await.unwrap_or_else(|_| Err(error::timed_out()))
}

fn pool(options: &PostgresOptions, connections: u32, flush: Flush) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(options.acquire_timeout)
        .idle_timeout(IDLE_MAX)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE_UNTRIED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(connect_options(options, flush))
}

fn connect_options(options: &PostgresOptions, flush: Flush) -> PgConnectOptions {
    let tls = match options.tls {
        PostgresTls::Disable => PgSslMode::Disable,
        PostgresTls::Require => PgSslMode::Require,
        PostgresTls::VerifyFull => PgSslMode::VerifyFull,
    };
    let commit = if flush == Flush::Waits { "on" } else { "off" };
    // Everything is said, so that nothing comes from the environment of the process.
    let mut connect = PgConnectOptions::new_without_pgpass()
        .port(options.port)
        .database(&options.database)
        .username(&options.user)
        .password(options.password.as_ref().map_or("", |password| password.reveal()))
        .ssl_mode(tls)
        .application_name("tiny-harness")
        .statement_cache_capacity(STATEMENTS)
        .options(SETTINGS)
        .options([("search_path", options.schema.as_str()), ("synchronous_commit", commit)])
        .disable_statement_logging();
    connect = if options.host.starts_with('/') {
        connect.socket(&options.host)
    } else {
        connect.host(&options.host)
    };
    match &options.tls_ca {
        Some(path) => connect.ssl_root_cert(path),
        None => connect,
    }
}
