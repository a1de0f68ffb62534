//! The store that the configuration names.

use std::{path::Path, sync::Arc};

use harness_ports::{Store, StoreError};
use harness_store::{CommitHook, PostgresOptions, PostgresStore, PostgresUse, SqliteStore, StoreOptions};

use crate::{config::Config, failure::Failure};

/// An open store.
pub(crate) enum OpenStore {
    /// The SQLite file.
    Sqlite(Arc<SqliteStore>),
    /// The PostgreSQL server.
    Postgres(Arc<PostgresStore>),
}

impl OpenStore {
    /// Opens the store for an engine that needs it as `usage` says; a file is always one process's own.
    /// Errors: texts for the operator.
    pub(crate) async fn open(
        config: &Config,
        usage: PostgresUse,
        on_commit: Option<CommitHook>,
    ) -> Result<Self, Failure> {
        Self::open_here(config, usage, on_commit).await.map_err(|unopened| unopened.failure)
    }

    /// The store for a command that needs all of it; `None` when another process has it open.
    pub(crate) async fn open_unused(config: &Config) -> Result<Option<Self>, Failure> {
        match Self::open_here(config, PostgresUse::Alone, None).await {
            Ok(store) => Ok(Some(store)),
            Err(unopened) if unopened.in_use => Ok(None),
            Err(unopened) => Err(unopened.failure),
        }
    }

    async fn open_here(
        config: &Config,
        usage: PostgresUse,
        on_commit: Option<CommitHook>,
    ) -> Result<Self, Unopened> {
        match &config.postgres {
            None => sqlite(&config.store.sqlite_path, on_commit).map(Self::Sqlite),
            Some(postgres) => {
                let options = PostgresOptions { usage, on_commit, ..postgres.options() };
                let opened = PostgresStore::open(options).await;
                opened.map(Self::Postgres).map_err(|error| {
                    Unopened::because(&format!("store.postgres = {}", postgres.place()), &error)
                })
            }
        }
    }

    /// The store, for whoever reads and writes.
    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::clone(store) as _,
            Self::Postgres(store) => Arc::clone(store) as _,
        }
    }

    /// Where it is, for the operator.
    pub(crate) fn place(&self, config: &Config) -> String {
        match (self, &config.postgres) {
            (Self::Postgres(store), Some(postgres)) => {
                format!("PostgreSQL, {}, version {}", postgres.place(), store.schema_version())
            }
            (Self::Postgres(_), None) | (Self::Sqlite(_), _) => {
                config.store.sqlite_path.display().to_string()
            }
        }
    }

    /// Writes what was begun and ends.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}

/// A store that was not opened.
struct Unopened {
    in_use: bool,
    failure: Failure,
}

impl Unopened {
    fn because(place: &str, error: &StoreError) -> Self {
        let failure = Failure::general(store_problem(place, error));
        Self { in_use: matches!(error, StoreError::Locked { .. }), failure }
    }
}

fn sqlite(path: &Path, on_commit: Option<CommitHook>) -> Result<Arc<SqliteStore>, Unopened> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|e| Unopened {
        in_use: false,
        failure: Failure::general(format!(
            "cannot create the folder {} of the store: {e}",
            directory.display()
        )),
    })?;
    let mut options = StoreOptions::new(path);
    options.on_commit = on_commit;
    let place = format!("store.sqlite_path = {}", path.display());
    SqliteStore::open(options).map_err(|error| Unopened::because(&place, &error))
}

fn store_problem(place: &str, error: &StoreError) -> String {
    let cause = std::error::Error::source(error).map(|e| format!(": {e}")).unwrap_or_default();
    format!("[{}] {error}{cause} ({place})", error.code())
}
