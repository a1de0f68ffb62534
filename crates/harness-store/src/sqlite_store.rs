//! The store: the port's methods over the writer, the readers, the cache and the hub.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use harness_model::{BlockId, LogEntry, TaskId, TaskSnapshot, WorkflowId};
use harness_ports::{
    Census, Committed, LogStream, OldestTasks, Record, RecordKind, Store, StoreError, StoredTimer,
    StoredWorkflow, TaskCursor, TaskFields, TaskPage, TaskQuery, WriteBatch,
};
use tokio_util::sync::CancellationToken;

use crate::{
    block_cache::BlockCache,
    connection,
    encode::{self, EncodedBatch},
    error, follow,
    hub::Hub,
    migrations,
    options::StoreOptions,
    read::{self, FoundBlock},
    readers::Readers,
    writer::{Writer, WriterHandle},
};

/// The store in one SQLite file. One process owns it at a time.
///
/// Dropping it ends it as [`SqliteStore::close`] does, and waits for the writer.
#[derive(Debug)]
pub struct SqliteStore {
    writer: WriterHandle,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
    readers: Arc<Readers>,
    cache: Arc<BlockCache>,
    hub: Arc<Hub>,
    install_id: String,
}

impl SqliteStore {
    /// Opens the store, creating it when the file is missing.
    /// Errors: `Locked` when a process has it open; `Corrupt` for a file of a newer build or of another program.
    pub fn open(options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        // Absolute, so that no name is taken for a URI and a later change of directory changes nothing.
        let path: PathBuf =
            std::path::absolute(&options.path).map_err(|e| error::io("finding its file", e))?;
        let lock = connection::lock(&path)?;
        let mut connection = connection::open_writer(&path)?;
        migrations::migrate(&mut connection, &path)?;
        let install_id = migrations::install_id(&connection)?;
        let (hub, stop) = (Arc::new(Hub::default()), CancellationToken::new());
        let cache = Arc::new(BlockCache::new(options.block_cache_bytes));
        let (writer, thread) = Writer {
            connection,
            _lock: lock,
            hub: Arc::clone(&hub),
            cache: Arc::clone(&cache),
            on_commit: options.on_commit,
            stop: stop.clone(),
        }
        .spawn()?;
        let readers = Arc::new(Readers::new(path, options.readers));
        let thread = Mutex::new(Some(thread));
        Ok(Arc::new(Self { writer, thread, stop, readers, cache, hub, install_id }))
    }

    /// Writes what is queued and ends. Later calls, and streams that wait, get `Unavailable`.
    pub async fn close(&self) {
        if let Some(thread) = self.begin_close() {
            let joined = tokio::task::spawn_blocking(|| thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the store's writer had stopped early");
            }
        }
    }

    fn begin_close(&self) -> Option<JoinHandle<()>> {
        self.stop.cancel();
        self.readers.close();
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn read_block(&self, id: &BlockId) -> Result<Option<Bytes>, StoreError> {
        let address = encode::address(id);
        if let Some(bytes) = self.cache.get(&address) {
            return Ok(Some(bytes));
        }
        match self.readers.read_few(move |connection| read::block(connection, &address)).await? {
            FoundBlock::Small(bytes) => {
                self.cache.put(address, &bytes);
                Ok(Some(bytes))
            }
            FoundBlock::Large => {
                self.readers.read(move |connection| read::block_of_any_size(connection, &address)).await
            }
            FoundBlock::Missing => Ok(None),
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if let Some(thread) = self.begin_close()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer had stopped early");
        }
    }
}

impl Store for SqliteStore {
    fn commit(&self, batch: WriteBatch) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let writer = self.writer.clone();
        async move { writer.commit(EncodedBatch::new(batch)?).await }.boxed()
    }

    fn block<'a>(&'a self, id: &'a BlockId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.read_block(id).boxed()
    }

    fn workflow<'a>(
        &'a self,
        id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Option<StoredWorkflow>, StoreError>> {
        async move {
            // Every new task asks once for what is not there.
            let wanted = id.clone();
            if !self.readers.read_few(move |connection| read::workflow_exists(connection, &wanted)).await? {
                return Ok(None);
            }
            let wanted = id.clone();
            self.readers.read(move |connection| read::workflow(connection, &wanted)).await
        }
        .boxed()
    }

    fn workflows_with_activities<'a>(
        &'a self,
        after: Option<&'a WorkflowId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<WorkflowId>, StoreError>> {
        let (after, limit) = (after.cloned(), sql_limit(limit));
        self.readers
            .read(move |connection| read::workflows_with_activities(connection, after.as_ref(), limit))
            .boxed()
    }

    fn next_timers(&self, limit: usize) -> BoxFuture<'_, Result<Vec<StoredTimer>, StoreError>> {
        let limit = sql_limit(limit);
        self.readers.read(move |connection| read::next_timers(connection, limit)).boxed()
    }

    fn timers<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Vec<StoredTimer>, StoreError>> {
        let workflow_id = workflow_id.clone();
        self.readers.read_few(move |connection| read::timers(connection, &workflow_id)).boxed()
    }

    fn delivery<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
        dedupe_key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Option<u64>>, StoreError>> {
        let (workflow_id, dedupe_key) = (workflow_id.clone(), dedupe_key.to_owned());
        self.readers.read_few(move |connection| read::delivery(connection, &workflow_id, &dedupe_key)).boxed()
    }

    fn log<'a>(
        &'a self,
        task_id: &'a TaskId,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, StoreError>> {
        let task_id = task_id.clone();
        let from = after.map_or(0, |after| after.saturating_add(1));
        async move {
            let read = move |connection: &_| read::log_page(connection, &task_id, from, limit);
            Ok(self.readers.read(read).await?.entries)
        }
        .boxed()
    }

    fn follow(&self, task_id: &TaskId, after: Option<u64>) -> LogStream {
        follow::follow(&self.hub, &self.readers, task_id, after)
    }

    fn task<'a>(
        &'a self,
        task_id: &'a TaskId,
        fields: TaskFields,
    ) -> BoxFuture<'a, Result<Option<TaskSnapshot>, StoreError>> {
        async move {
            let wanted = task_id.clone();
            let look = move |connection: &_| read::small_task(connection, &wanted, fields);
            match self.readers.read_few(look).await? {
                Some(task) => Ok(task),
                None => {
                    let wanted = task_id.clone();
                    self.readers.read(move |connection| read::task(connection, &wanted, fields)).await
                }
            }
        }
        .boxed()
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        self.readers.read(move |connection| read::list_tasks(connection, &query)).boxed()
    }

    fn oldest_tasks(&self, query: OldestTasks) -> BoxFuture<'_, Result<Vec<TaskCursor>, StoreError>> {
        self.readers.read(move |connection| read::oldest_tasks(connection, &query)).boxed()
    }

    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        self.readers.read(read::census).boxed()
    }

    fn records<'a>(
        &'a self,
        kind: RecordKind,
        task_id: &'a TaskId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        let (task_id, limit) = (task_id.clone(), sql_limit(limit));
        self.readers.read(move |connection| read::records(connection, kind, &task_id, limit)).boxed()
    }

    fn records_page<'a>(
        &'a self,
        kind: RecordKind,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        let (after, limit) = (after.map(str::to_owned), sql_limit(limit));
        self.readers
            .read(move |connection| read::records_page(connection, kind, after.as_deref(), limit))
            .boxed()
    }

    fn install_id(&self) -> &str {
        &self.install_id
    }
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
