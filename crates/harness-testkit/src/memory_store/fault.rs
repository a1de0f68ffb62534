//! A store that fails or dies at a chosen commit, around any other store.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture};
use harness_model::{BlockId, LogEntry, TaskId, TaskSnapshot, WorkflowId};
use harness_ports::{
    Census, Committed, LogStream, OldestTasks, Record, RecordKind, Store, StoreError, StoredTimer,
    StoredWorkflow, TaskCursor, TaskFields, TaskPage, TaskQuery, WriteBatch,
};
use tokio_util::sync::CancellationToken;

/// What goes wrong, and when. Commits are counted from 1, those of all callers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The process dies before this commit reaches the disk: it and everything after it fails.
    DieBefore(u64),
    /// The process dies right after this commit is durable: its caller never learns, everything after it fails.
    DieAfter(u64),
    /// These commits fail, from the first to the last, and keep nothing.
    Fail {
        /// The first commit that fails.
        first: u64,
        /// The last commit that fails.
        last: u64,
    },
}

/// A [`Store`] that hands everything to another one until its [`Fault`] strikes.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    fault: Fault,
    commits: Arc<AtomicU64>,
    dead: Arc<AtomicBool>,
    death: CancellationToken,
}

impl std::fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultStore").field("fault", &self.fault).finish_non_exhaustive()
    }
}

impl FaultStore {
    /// A store that works like `inner` until the fault strikes.
    pub fn over(inner: Arc<dyn Store>, fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fault,
            commits: Arc::default(),
            dead: Arc::default(),
            death: CancellationToken::new(),
        })
    }

    /// How many commits were begun.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Cancelled once the store has died.
    pub fn death(&self) -> CancellationToken {
        self.death.clone()
    }

    /// Dies now, as after a kill: nothing is read or written through this handle any more.
    pub fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.death.cancel();
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.dead.load(Ordering::SeqCst) { Err(gone()) } else { Ok(()) }
    }

    fn guard<'a, T: 'a>(
        &'a self,
        read: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            self.alive()?;
            let value = read.await?;
            self.alive().map(|()| value)
        })
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable { what: "the process of this store has died".to_owned(), source: None }
}

impl Store for FaultStore {
    fn commit(&self, batch: WriteBatch) -> BoxFuture<'static, Result<Committed, StoreError>> {
        if let Err(error) = self.alive() {
            return Box::pin(async move { Err(error) });
        }
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let (before, after) = match self.fault {
            Fault::None => (false, false),
            Fault::DieBefore(n) => (number == n, false),
            Fault::DieAfter(n) => (false, number == n),
            Fault::Fail { first, last } if (first..=last).contains(&number) => {
                return Box::pin(async move {
                    Err(StoreError::Unavailable { what: format!("commit {number} fails"), source: None })
                });
            }
            Fault::Fail { .. } => (false, false),
        };
        if before {
            self.die();
            return Box::pin(async { Err(gone()) });
        }
        let commit = self.inner.commit(batch);
        let (dead, death) = (Arc::clone(&self.dead), self.death.clone());
        Box::pin(async move {
            let committed = commit.await?;
            if after {
                dead.store(true, Ordering::SeqCst);
                death.cancel();
            }
            if dead.load(Ordering::SeqCst) { Err(gone()) } else { Ok(committed) }
        })
    }

    fn block<'a>(&'a self, id: &'a BlockId) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.guard(self.inner.block(id))
    }

    fn workflow<'a>(
        &'a self,
        id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Option<StoredWorkflow>, StoreError>> {
        self.guard(self.inner.workflow(id))
    }

    fn workflows_with_activities<'a>(
        &'a self,
        after: Option<&'a WorkflowId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<WorkflowId>, StoreError>> {
        self.guard(self.inner.workflows_with_activities(after, limit))
    }

    fn next_timers(&self, limit: usize) -> BoxFuture<'_, Result<Vec<StoredTimer>, StoreError>> {
        self.guard(self.inner.next_timers(limit))
    }

    fn timers<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
    ) -> BoxFuture<'a, Result<Vec<StoredTimer>, StoreError>> {
        self.guard(self.inner.timers(workflow_id))
    }

    fn delivery<'a>(
        &'a self,
        workflow_id: &'a WorkflowId,
        dedupe_key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Option<u64>>, StoreError>> {
        self.guard(self.inner.delivery(workflow_id, dedupe_key))
    }

    fn log<'a>(
        &'a self,
        task_id: &'a TaskId,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, StoreError>> {
        self.guard(self.inner.log(task_id, after, limit))
    }

    fn follow(&self, task_id: &TaskId, after: Option<u64>) -> LogStream {
        self.inner.follow(task_id, after).take_until(self.death.clone().cancelled_owned()).boxed()
    }

    fn task<'a>(
        &'a self,
        task_id: &'a TaskId,
        fields: TaskFields,
    ) -> BoxFuture<'a, Result<Option<TaskSnapshot>, StoreError>> {
        self.guard(self.inner.task(task_id, fields))
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        self.guard(self.inner.tasks(query))
    }

    fn oldest_tasks(&self, query: OldestTasks) -> BoxFuture<'_, Result<Vec<TaskCursor>, StoreError>> {
        self.guard(self.inner.oldest_tasks(query))
    }

    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        self.guard(self.inner.census())
    }

    fn records<'a>(
        &'a self,
        kind: RecordKind,
        task_id: &'a TaskId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.guard(self.inner.records(kind, task_id, limit))
    }

    fn records_page<'a>(
        &'a self,
        kind: RecordKind,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.guard(self.inner.records_page(kind, after, limit))
    }

    fn install_id(&self) -> &str {
        self.inner.install_id()
    }
}
