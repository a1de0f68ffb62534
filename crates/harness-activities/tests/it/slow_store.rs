//! A store whose commits take their time. The time is virtual.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use harness_model::{BlockId, LogEntry, TaskId, TaskSnapshot, WorkflowId};
use harness_ports::{
    Census, Committed, LogStream, OldestTasks, Record, RecordKind, Store, StoreError, StoredTimer,
    StoredWorkflow, TaskCursor, TaskFields, TaskPage, TaskQuery, WriteBatch,
};

type Read<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

pub(crate) struct SlowStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) commit_ms: u64,
}

impl Store for SlowStore {
    fn commit(&self, batch: WriteBatch) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let (inner, wait) = (Arc::clone(&self.inner), Duration::from_millis(self.commit_ms));
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            inner.commit(batch).await
        })
    }

    fn block<'a>(&'a self, id: &'a BlockId) -> Read<'a, Option<Bytes>> {
        self.inner.block(id)
    }

    fn workflow<'a>(&'a self, id: &'a WorkflowId) -> Read<'a, Option<StoredWorkflow>> {
        self.inner.workflow(id)
    }

    fn workflows_with_activities<'a>(
        &'a self,
        after: Option<&'a WorkflowId>,
        limit: usize,
    ) -> Read<'a, Vec<WorkflowId>> {
        self.inner.workflows_with_activities(after, limit)
    }

    fn next_timers(&self, limit: usize) -> Read<'_, Vec<StoredTimer>> {
        self.inner.next_timers(limit)
    }

    fn delivery<'a>(&'a self, workflow_id: &'a WorkflowId, key: &'a str) -> Read<'a, Option<Option<u64>>> {
        self.inner.delivery(workflow_id, key)
    }

    fn log<'a>(&'a self, task_id: &'a TaskId, after: Option<u64>, limit: usize) -> Read<'a, Vec<LogEntry>> {
        self.inner.log(task_id, after, limit)
    }

    fn follow(&self, task_id: &TaskId, after: Option<u64>) -> LogStream {
        self.inner.follow(task_id, after)
    }

    fn task<'a>(&'a self, task_id: &'a TaskId, fields: TaskFields) -> Read<'a, Option<TaskSnapshot>> {
        self.inner.task(task_id, fields)
    }

    fn tasks(&self, query: TaskQuery) -> Read<'_, TaskPage> {
        self.inner.tasks(query)
    }

    fn oldest_tasks(&self, query: OldestTasks) -> Read<'_, Vec<TaskCursor>> {
        self.inner.oldest_tasks(query)
    }

    fn census(&self) -> Read<'_, Census> {
        self.inner.census()
    }

    fn records<'a>(&'a self, kind: RecordKind, task_id: &'a TaskId, limit: usize) -> Read<'a, Vec<Record>> {
        self.inner.records(kind, task_id, limit)
    }

    fn records_page<'a>(
        &'a self,
        kind: RecordKind,
        after: Option<&'a str>,
        limit: usize,
    ) -> Read<'a, Vec<Record>> {
        self.inner.records_page(kind, after, limit)
    }

    fn install_id(&self) -> &str {
        self.inner.install_id()
    }
}
