//! Commits: batches as transactions, several at once, each tried again when another one was in its way.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use harness_model::{LogEntry, TaskId};
use harness_ports::{Committed, StoreError, TaskGroup};
use sqlx::Connection;
use tokio::{
    sync::{Semaphore, oneshot, watch},
    time::{sleep, timeout},
};

use super::{
    connect::{Server, step},
    delete::{self, Deleted},
    error::{self, Kind},
    feeds::Feeds,
    found,
    owner::locked,
    plan::{self, Refused},
    save,
    signals::Outbox,
};
use crate::{
    block_cache::BlockCache,
    encode::{EncodedBatch, Op},
    error::{closed, conflict, corrupt},
    options::{CommitHook, CommitPhase},
};

/// How often a batch is tried.
const ATTEMPTS_MAX: u32 = 8;
/// Wait before the second attempt; doubled before each further one.
const RETRY_WAIT: Duration = Duration::from_millis(5);
/// How long the server is asked what became of a commit, and how long between two questions.
const FATE_MAX: Duration = Duration::from_secs(15);
const FATE_INTERVAL: Duration = Duration::from_millis(250);
/// How long batches may take to end when the store closes.
const CLOSE_GRACE: Duration = Duration::from_secs(40);

/// What a batch did.
struct Applied {
    entries: Vec<(TaskId, Arc<LogEntry>)>,
    /// The rows of the tasks that it published to.
    lives: HashMap<TaskId, i64>,
    deleted: Deleted,
}

/// Commits batches.
pub(super) struct Writer {
    pub(super) server: Server,
    pub(super) feeds: Arc<Feeds>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) on_commit: Option<CommitHook>,
    /// Whether another process has taken the store.
    pub(super) lost: Arc<AtomicBool>,
    pub(super) schema: String,
    /// Places of batches that run.
    pub(super) places: Semaphore,
    pub(super) commits: AtomicU64,
    pub(super) given_up: GivenUp,
    pub(super) running: TaskGroup,
}

/// Why an attempt did not commit.
enum Failed {
    /// Nothing was written.
    Refused(Refused),
    /// The connection broke while this transaction was being committed.
    Unheard { xid: String, applied: Applied, cause: sqlx::Error },
}

impl<E: Into<Refused>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl Writer {
    /// Begins a batch and waits for the commit. Dropping the future then does not take the batch back; batches that come
    /// later begin after it has ended.
    pub(super) async fn commit(self: Arc<Self>, batch: EncodedBatch) -> Result<Committed, StoreError> {
        self.given_up.none().await;
        if self.running.stop_token().is_cancelled() {
            return Err(closed());
        }
        if self.lost.load(Ordering::Relaxed) {
            return Err(locked(&self.schema));
        }
        let (answer, answered) = oneshot::channel();
        let caller = self.given_up.caller();
        self.running.spawn(Arc::clone(&self).carry(batch, answer, Arc::clone(&caller.batch)));
        let result = answered.await;
        drop(caller);
        result.map_err(|_| closed())?
    }

    /// Takes no more batches and waits for those that were begun.
    pub(super) async fn close(&self) {
        self.begin_close();
        if !self.running.shutdown(CLOSE_GRACE).await {
            tracing::error!("the store closes while batches are being committed");
        }
    }

    /// Takes no more batches.
    pub(super) fn begin_close(&self) {
        self.running.stop_token().cancel();
    }

    async fn carry(
        self: Arc<Self>,
        batch: EncodedBatch,
        answer: oneshot::Sender<Result<Committed, StoreError>>,
        tracked: Arc<Mutex<BatchState>>,
    ) {
        // Waited for here and not by the caller: a place that is given to somebody who does not go on is lost for all.
        let result = match self.places.acquire().await {
            Ok(_place) => self.commit_now(&batch).await,
            Err(_) => Err(closed()),
        };
        let result = result.map(|applied| self.tell(&batch, applied));
        self.given_up.ended(&tracked);
        // A caller that no longer waits has dropped its future; its batch is kept all the same.
        drop(answer.send(result));
    }

    /// Tells everybody, here and elsewhere.
    fn tell(&self, batch: &EncodedBatch, applied: Applied) -> Committed {
        let Applied { entries, lives, deleted } = applied;
        for address in &deleted.blocks {
            self.cache.remove(address);
        }
        for op in &batch.ops {
            if let Op::PutBlock { address, bytes, .. } = op {
                self.cache.put(*address, bytes);
            }
        }
        for of_task in entries.chunk_by(|a, b| a.0 == b.0) {
            let task_id = &of_task[0].0;
            let Some(life) = lives.get(task_id) else { continue };
            self.feeds.publish(task_id, *life, of_task.iter().map(|(_, entry)| entry));
            let end = of_task.last().map_or(0, |(_, entry)| entry.seq + 1);
            self.outbox.reaches(task_id, *life, end);
        }
        for (task_id, life) in &deleted.tasks {
            self.feeds.end(task_id, *life);
            self.outbox.deleted(task_id, *life);
        }
        self.outbox.removed(&deleted.blocks);
        Committed { entries, deleted: deleted.rows }
    }

    async fn commit_now(&self, batch: &EncodedBatch) -> Result<Applied, StoreError> {
        let (mut wait, mut last) = (RETRY_WAIT, None);
        for attempt in 0..ATTEMPTS_MAX {
            let kind = last.as_ref().map(error::kind);
            let failed = match self.attempt(batch, kind == Some(Kind::Lost)).await {
                Ok(applied) => return Ok(applied),
                Err(failed) => failed,
            };
            let cause = match failed {
                Failed::Refused(Refused::Conflict(what)) => return Err(conflict(what)),
                Failed::Refused(Refused::Corrupt(what)) => return Err(corrupt(what)),
                Failed::Refused(Refused::Server(cause)) => cause,
                Failed::Unheard { xid, applied, cause } => {
                    match timeout(FATE_MAX, self.fate(&xid)).await.ok().flatten() {
                        Some(true) => return Ok(applied),
                        Some(false) => cause,
                        None => {
                            tracing::error!(error = %cause, "nobody knows whether a batch was committed");
                            return Err(error::server("committing, and it may have happened", cause));
                        }
                    }
                }
            };
            if error::kind(&cause) == Kind::Other {
                return Err(error::server("committing", cause));
            }
            tracing::debug!(error = %cause, attempt, "a batch is tried again");
            last = Some(cause);
            sleep(wait).await;
            wait *= 2;
        }
        Err(error::server("committing", last.unwrap_or_else(error::timed_out)))
    }

    async fn attempt(&self, batch: &EncodedBatch, was_lost: bool) -> Result<Applied, Failed> {
        let mut connection =
            if was_lost { self.server.tried_connection().await? } else { self.server.connection().await? };
        let result = self.transact(&mut connection, batch).await;
        let broken = match &result {
            Ok(_) => false,
            Err(Failed::Unheard { .. }) => true,
            Err(Failed::Refused(Refused::Server(e))) => error::kind(e) == Kind::Lost,
            Err(Failed::Refused(Refused::Conflict(_) | Refused::Corrupt(_))) => false,
        };
        if broken {
            connection.close_on_drop();
        }
        result
    }

    /// One transaction. Dropped on an error, it is rolled back before the connection is used again.
    async fn transact(
        &self,
        connection: &mut sqlx::PgConnection,
        batch: &EncodedBatch,
    ) -> Result<Applied, Failed> {
        let mut transaction = step(connection.begin()).await?;
        let mut found = found::find(&mut transaction, batch).await?;
        let xid = std::mem::take(&mut found.xid);
        let plan = plan::plan(batch, found)?;
        save::save(&mut transaction, &plan, batch.at).await?;
        let deleted = delete::delete(&mut transaction, &plan).await?;
        let lives = plan.tasks.iter().map(|(id, change)| (TaskId::from(*id), change.row)).collect();
        let applied = Applied { entries: plan.entries, lives, deleted };
        let number = self.commits.load(Ordering::Relaxed) + 1;
        if let Some(hook) = &self.on_commit {
            hook(CommitPhase::Before, number);
        }
        match step(transaction.commit()).await {
            Ok(()) => {}
            // The server said no: nothing was written.
            Err(cause @ sqlx::Error::Database(_)) if error::kind(&cause) != Kind::Lost => {
                return Err(cause.into());
            }
            Err(cause) => return Err(Failed::Unheard { xid, applied, cause }),
        }
        if let Some(hook) = &self.on_commit {
            // One batch at a time while there is a hook.
            self.commits.store(number, Ordering::Relaxed);
            hook(CommitPhase::After, number);
        }
        Ok(applied)
    }

    /// Whether a transaction was committed whose end nobody heard; asked until the server answers. `None` when it no longer
    /// knows.
    async fn fate(&self, xid: &str) -> Option<bool> {
        let sql = "SELECT pg_xact_status($1::text::xid8)";
        loop {
            let answer = match self.server.tried_connection().await {
                Ok(mut connection) => {
                    let query = sqlx::query_scalar::<_, Option<String>>(sql).bind(xid);
                    step(query.fetch_one(&mut *connection)).await
                }
                Err(e) => Err(e),
            };
            match answer.as_ref().map(Option::as_deref) {
                Ok(Some("committed")) => return Some(true),
                Ok(Some("aborted")) => return Some(false),
                // A server that came back after a crash knows nothing of a transaction that left no trace.
                Err(sqlx::Error::Database(e)) if e.code().as_deref() == Some("22023") => return Some(false),
                Ok(None) => return None,
                // The old connection has not been noticed to be gone, or there is no new one yet.
                Ok(Some(_)) | Err(_) => sleep(FATE_INTERVAL).await,
            }
        }
    }
}

/// Batches that run on while nobody waits for them any more.
#[derive(Debug)]
pub(super) struct GivenUp {
    running: watch::Sender<usize>,
}

/// A batch that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchState {
    Awaited,
    GivenUp,
    Ended,
}

/// Whoever waits for a batch; gone before the batch has ended, it has given it up.
struct Caller<'a> {
    given_up: &'a GivenUp,
    batch: Arc<Mutex<BatchState>>,
}

impl Default for GivenUp {
    fn default() -> Self {
        Self { running: watch::Sender::new(0) }
    }
}

impl GivenUp {
    /// Waits until there is none.
    async fn none(&self) {
        // The sender is borrowed: it cannot be gone.
        drop(self.running.subscribe().wait_for(|running| *running == 0).await);
    }

    fn caller(&self) -> Caller<'_> {
        Caller { given_up: self, batch: Arc::new(Mutex::new(BatchState::Awaited)) }
    }

    fn ended(&self, batch: &Mutex<BatchState>) {
        let mut state = lock(batch);
        if *state == BatchState::GivenUp {
            self.running.send_modify(|running| *running -= 1);
        }
        *state = BatchState::Ended;
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.batch);
        if *state == BatchState::Awaited {
            *state = BatchState::GivenUp;
            self.given_up.running.send_modify(|running| *running += 1);
        }
    }
}

fn lock(batch: &Mutex<BatchState>) -> MutexGuard<'_, BatchState> {
    // Every change leaves the state usable, so that a panic elsewhere is no reason to stop.
    batch.lock().unwrap_or_else(PoisonError::into_inner)
}
