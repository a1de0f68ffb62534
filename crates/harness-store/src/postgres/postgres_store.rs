//! The store: the port's methods over the server, the writer, the cache and the feeds.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use harness_model::{BlockId, LogEntry, TaskId, TaskSnapshot, WorkflowId};
use harness_ports::{
    Census, Committed, LogStream, OldestTasks, Record, RecordKind, Store, StoreError, StoredTimer,
    StoredWorkflow, TaskCursor, TaskFields, TaskGroup, TaskPage, TaskQuery, WriteBatch,
};
use tokio::sync::Semaphore;

use super::{
    connect::Server,
    feeds::Feeds,
    follow,
    migrations::{self, Schema},
    options::{PostgresOptions, PostgresUse},
    owner::Owner,
    read,
    signals::{Outbox, Signals},
    writer::{GivenUp, Writer},
};
use crate::{
    block_cache::BlockCache,
    encode::{self, EncodedBatch},
};

/// How long the connections that wake followers may take to end.
const SIGNALS_GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// The store on a PostgreSQL server. Any number of processes share it.
///
/// While the server is away everything gets `Unavailable`; when it is back, the store goes on by itself. Dropping it
/// without [`PostgresStore::close`] ends it as well, without waiting for anything.
pub struct PostgresStore {
    server: Server,
    writer: Arc<Writer>,
    cache: Arc<BlockCache>,
    feeds: Arc<Feeds>,
    signals: TaskGroup,
    schema: Schema,
}

impl PostgresStore {
    /// Opens the store, creating its schema when it is missing. Needs a Tokio runtime, which must live as long.
    /// Errors: `Unavailable` when the server cannot be reached or does not let the role in; `Locked` when it is to be alone
    /// and another process is; `Corrupt` for a schema of a
    /// newer build or of another program.
    pub async fn open(options: PostgresOptions) -> Result<Arc<Self>, StoreError> {
        if !PostgresOptions::is_schema_name(&options.schema) {
            let what =
                "the name of its schema is not plain lower-case letters, digits and underscores".to_owned();
            return Err(StoreError::Unavailable { what, source: None });
        }
        let server = Server::new(&options);
        let lost = Arc::new(AtomicBool::new(false));
        let opened = begin(&server, &options, Arc::clone(&lost)).await;
        let (schema, owner) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                server.close().await;
                return Err(error);
            }
        };
        let (feeds, outbox) = (Arc::new(Feeds::default()), Arc::new(Outbox::new(migrations::random_hex()?)));
        let cache = Arc::new(BlockCache::new(options.block_cache_bytes));
        let signals = Signals {
            server: server.clone(),
            feeds: Arc::clone(&feeds),
            cache: Arc::clone(&cache),
            outbox: Arc::clone(&outbox),
            channel: format!("{}_log", options.schema),
        };
        let group = TaskGroup::new();
        group.spawn(signals.clone().listen(group.stop_token().clone()));
        group.spawn(signals.clone().watch(group.stop_token().clone()));
        group.spawn(signals.tell(group.stop_token().clone()));
        if let Some(owner) = owner {
            group.spawn(owner.keep(group.stop_token().clone()));
        }
        // Reads find a connection however many batches run.
        let places = match options.on_commit {
            Some(_) => 1,
            None => usize::try_from(options.pool.max(2) * 3 / 4).unwrap_or(1),
        };
        let writer = Writer {
            server: server.clone(),
            feeds: Arc::clone(&feeds),
            outbox,
            cache: Arc::clone(&cache),
            on_commit: options.on_commit,
            lost,
            schema: options.schema,
            places: Semaphore::new(places),
            commits: AtomicU64::new(0),
            given_up: GivenUp::default(),
            running: TaskGroup::new(),
        };
        Ok(Arc::new(Self { server, writer: Arc::new(writer), cache, feeds, signals: group, schema }))
    }

    /// The version of the schema.
    pub fn schema_version(&self) -> usize {
        self.schema.version
    }

    /// Waits for the batches that run and ends. Later calls, and streams that wait, get `Unavailable`.
    pub async fn close(&self) {
        self.writer.close().await;
        self.signals.shutdown(SIGNALS_GRACE).await;
        self.feeds.close();
        self.server.close().await;
    }

    async fn read_block(&self, id: &BlockId) -> Result<Option<Bytes>, StoreError> {
        let address = encode::address(id);
        if let Some(bytes) = self.cache.get(&address) {
            return Ok(Some(bytes));
        }
        let found = read::block(&self.server, &address).await?;
        if let Some(bytes) = &found {
            self.cache.put(address, bytes);
        }
        Ok(found)
    }
}

/// What can fail before anything runs: the lock, so that nobody migrates a schema that somebody else is alone with, and
/// the migration.
async fn begin(
    server: &Server,
    options: &PostgresOptions,
    lost: Arc<AtomicBool>,
) -> Result<(Schema, Option<Owner>), StoreError> {
    let owner = match options.usage {
        PostgresUse::Shared => None,
        PostgresUse::Alone => Some(Owner::take(server, &options.schema, lost).await?),
    };
    Ok((migrations::migrate(server, &options.schema).await?, owner))
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.writer.begin_close();
        self.signals.stop_token().cancel();
        self.feeds.close();
    }
}

impl Store for PostgresStore {
    fn commit(&self, batch: WriteBatch) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let writer = Arc::clone(&self.writer);
        async move { writer.commit(EncodedBatch::new(batch)?).await }.boxed()
    }

    fn block<'a>(&'a self, id: &'a BlockId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.read_block(id).boxed()
    }

    fn workflow<'a>(
        &'a self,
        id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Option<StoredWorkflow>, StoreError>> {
        read::workflow(&self.server, id).boxed()
    }

    fn workflows_with_activities<'a>(
        &'a self,
        after: Option<&'a WorkflowId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<WorkflowId>, StoreError>> {
        read::workflows_with_activities(&self.server, after, limit).boxed()
    }

    fn next_timers(&self, limit: usize) -> BoxFuture<'_, Result<Vec<StoredTimer>, StoreError>> {
        read::next_timers(&self.server, limit).boxed()
    }

    fn timers<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Vec<StoredTimer>, StoreError>> {
        read::timers(&self.server, workflow_id).boxed()
    }

    fn delivery<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
        dedupe_key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Option<u64>>, StoreError>> {
        read::delivery(&self.server, workflow_id, dedupe_key).boxed()
    }

    fn log<'a>(
        &'a self,
        task_id: &'a TaskId,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, StoreError>> {
        let from = after.map_or(0, |after| after.saturating_add(1));
        async move { Ok(read::log_page(&self.server, task_id, from, limit).await?.entries) }.boxed()
    }

    fn follow(&self, task_id: &TaskId, after: Option<u64>) -> LogStream {
        follow::follow(&self.feeds, &self.server, task_id, after)
    }

    fn task<'a>(
        &'a self,
        task_id: &'a TaskId,
        fields: TaskFields,
    ) -> BoxFuture<'a, Result<Option<TaskSnapshot>, StoreError>> {
        read::task(&self.server, task_id, fields).boxed()
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        async move { read::list_tasks(&self.server, &query).await }.boxed()
    }

    fn oldest_tasks(&self, query: OldestTasks) -> BoxFuture<'_, Result<Vec<TaskCursor>, StoreError>> {
        async move { read::oldest_tasks(&self.server, &query).await }.boxed()
    }

    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        read::census(&self.server).boxed()
    }

    fn records<'a>(
        &'a self,
        kind: RecordKind,
        task_id: &'a TaskId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        read::records(&self.server, kind, task_id, limit).boxed()
    }

    fn records_page<'a>(
        &'a self,
        kind: RecordKind,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        read::records_page(&self.server, kind, after, limit).boxed()
    }

    fn install_id(&self) -> &str {
        &self.schema.install_id
    }
}
