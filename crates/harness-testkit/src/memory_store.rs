//! A store in memory: simple enough to be right at a glance, complete enough to stand in for a database.

mod apply;
mod delete;
mod fault;
mod reads;
mod tables;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture};
use harness_model::{BlockId, LogEntry, TaskId, TaskSnapshot, WorkflowId};
use harness_ports::{
    Census, Committed, LogStream, OldestTasks, Record, RecordKind, Store, StoreError, StoredTimer,
    StoredWorkflow, TaskCursor, TaskFields, TaskPage, TaskQuery, WriteBatch,
};
use tokio::sync::watch;

pub use fault::{Fault, FaultStore};
use tables::Tables;

/// Entries a follower reads at a time.
const FOLLOW_PAGE: usize = 256;

/// A [`Store`] in memory. What was committed outlives the handle as long as any handle of the same store lives.
#[derive(Debug)]
pub struct MemoryStore {
    disk: Arc<Disk>,
}

#[derive(Debug)]
struct Disk {
    tables: Mutex<Tables>,
    changed: watch::Sender<u64>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Arc<Self> {
        let disk = Disk { tables: Mutex::default(), changed: watch::Sender::new(0) };
        Arc::new(Self { disk: Arc::new(disk) })
    }

    /// Another handle of the same store, as a process gets it that starts after this one is gone.
    pub fn reopen(&self) -> Arc<Self> {
        Arc::new(Self { disk: Arc::clone(&self.disk) })
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.disk.tables()
    }

    fn read<'a, T: Send + 'a>(
        &self,
        read: impl FnOnce(&Tables) -> T,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let value = read(&self.tables());
        Box::pin(async move { Ok(value) })
    }
}

impl Disk {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A batch is checked before it is applied, so a panic cannot leave half of one behind.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: WriteBatch) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let disk = Arc::clone(&self.disk);
        Box::pin(async move {
            let committed = {
                let mut tables = disk.tables();
                apply::check(&tables, &batch)?;
                apply::apply(&mut tables, batch)
            };
            if !committed.entries.is_empty() || !committed.deleted.is_empty() {
                disk.changed.send_modify(|version| *version += 1);
            }
            Ok(committed)
        })
    }

    fn block<'a>(&'a self, id: &'a BlockId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.read(|tables| tables.blocks.get(id).map(|row| row.bytes.clone()))
    }

    fn workflow<'a>(
        &'a self,
        id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Option<StoredWorkflow>, StoreError>> {
        self.read(|tables| reads::workflow(tables, id))
    }

    fn workflows_with_activities<'a>(
        &'a self,
        after: Option<&'a WorkflowId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<WorkflowId>, StoreError>> {
        self.read(|tables| reads::workflows_with_activities(tables, after, limit))
    }

    fn next_timers(&self, limit: usize) -> BoxFuture<'_, Result<Vec<StoredTimer>, StoreError>> {
        self.read(|tables| reads::next_timers(tables, limit))
    }

    fn timers<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Vec<StoredTimer>, StoreError>> {
        self.read(|tables| reads::timers(tables, workflow_id))
    }

    fn delivery<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
        dedupe_key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Option<u64>>, StoreError>> {
        self.read(|tables| tables.workflows.get(workflow_id)?.deliveries.get(dedupe_key).copied())
    }

    fn log<'a>(
        &'a self,
        task_id: &'a TaskId,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, StoreError>> {
        self.read(|tables| {
            let page = reads::log(tables, task_id, after, limit);
            page.iter().map(|entry| LogEntry::clone(entry)).collect()
        })
    }

    fn follow(&self, task_id: &TaskId, after: Option<u64>) -> LogStream {
        let follower = Follower {
            disk: Arc::clone(&self.disk),
            changes: self.disk.changed.subscribe(),
            task_id: task_id.clone(),
            life: self.tables().life(task_id),
            after,
        };
        futures::stream::unfold(follower, Follower::next_page).flat_map(futures::stream::iter).boxed()
    }

    fn task<'a>(
        &'a self,
        task_id: &'a TaskId,
        fields: TaskFields,
    ) -> BoxFuture<'a, Result<Option<TaskSnapshot>, StoreError>> {
        self.read(|tables| reads::task(tables, task_id, fields))
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        self.read(|tables| reads::tasks(tables, &query))
    }

    fn oldest_tasks(&self, query: OldestTasks) -> BoxFuture<'_, Result<Vec<TaskCursor>, StoreError>> {
        self.read(|tables| reads::oldest_tasks(tables, &query))
    }

    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        self.read(reads::census)
    }

    fn records<'a>(
        &'a self,
        kind: RecordKind,
        task_id: &'a TaskId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.read(|tables| reads::records(tables, kind, task_id, limit))
    }

    fn records_page<'a>(
        &'a self,
        kind: RecordKind,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.read(|tables| reads::records_page(tables, kind, after, limit))
    }

    fn install_id(&self) -> &str {
        "00000000000000000000000000000000"
    }
}

/// One reader of a log.
struct Follower {
    disk: Arc<Disk>,
    changes: watch::Receiver<u64>,
    task_id: TaskId,
    /// The life of the task that is followed.
    life: u64,
    after: Option<u64>,
}

type LogItem = Result<Arc<LogEntry>, StoreError>;

impl Follower {
    /// The next entries, as soon as there are any; `None` once the task is deleted.
    async fn next_page(mut self) -> Option<(Vec<LogItem>, Self)> {
        loop {
            self.changes.borrow_and_update();
            let page = {
                let tables = self.disk.tables();
                if tables.life(&self.task_id) != self.life {
                    return None;
                }
                reads::log(&tables, &self.task_id, self.after, FOLLOW_PAGE)
            };
            if let Some(last) = page.last() {
                self.after = Some(last.seq);
                return Some((page.into_iter().map(Ok).collect(), self));
            }
            // The sender lives in the disk that this follower holds.
            self.changes.changed().await.ok()?;
        }
    }
}
