//! The tick: what has to be done now and then, whoever hosts the tasks.
//!
//! Polls the channels that cannot call, takes the picture for operators, and deletes what is past its retention. With the
//! local engine the server calls [`Tick::run`] on a timer. On an engine that hosts schedules, the schedule starts a workflow
//! whose one activity calls it, once per run and never again for the same run: give that activity a time-out above three
//! times [`STEP_TIME`] and one attempt, and let the schedule skip a tick while one runs.

mod monitor;
mod poll;
mod sweep;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use harness_model::Timestamp;
use harness_ports::{Clock, DeletedRows, PullChannel, Store, StoreError};
use serde::Serialize;

/// Time that each step may take. Source: the reference's limit for each activity of a tick.
pub const STEP_TIME: Duration = Duration::from_secs(60);

/// What a tick works with.
pub struct TickDeps {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Channels to poll.
    pub channels: Vec<Arc<dyn PullChannel>>,
    /// What waits to be sent; `None` where this process cannot tell.
    pub outbox: Option<Arc<dyn Outbox>>,
    /// The engine of this process.
    pub engine: Arc<dyn EngineWatch>,
    /// How long what is kept.
    pub retention: Retention,
    /// Who runs the tick.
    pub process: ProcessInfo,
    /// Time between two ticks; shown to operators, so that they know when a picture is old.
    pub interval: Duration,
}

impl fmt::Debug for TickDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TickDeps").field("process", &self.process).finish_non_exhaustive()
    }
}

/// What waits to be sent.
pub trait Outbox: Send + Sync {
    /// How many receivers have not heard everything yet. Bounded in what it reads; then the number is a lower bound.
    fn behind(&self) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// How an engine does.
pub trait EngineWatch: Send + Sync {
    /// A look at it. Errors: the store's.
    fn look(&self) -> BoxFuture<'_, Result<EngineFacts, StoreError>>;
}

/// What the picture says about the engine. Numbers are those of the process that takes the picture, since it started,
/// unless they say otherwise; an engine leaves out what it does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EngineFacts {
    /// Such as `local`.
    pub kind: &'static str,
    /// Wake-ups of all processes that are not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_wakes: Option<u64>,
    /// Wake-ups in a row that could not be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_wakes: Option<u64>,
    /// Workflow tasks that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_task_failures: Option<u64>,
    /// Workflows that this build cannot host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<u64>,
}

/// How long what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Tasks that have ended, counted from their last status, with everything of theirs.
    pub tasks: Duration,
    /// Audit rows of messages, counted from the message, also of tasks that go on.
    pub inbox_audit: Duration,
    /// Push notification configurations, counted from the last delivery, also of tasks that go on.
    pub push_configs: Duration,
}

/// Who runs a tick. Nothing here names a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Version of the build.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Hash of the host's name: tells hosts apart without naming them.
    pub host: String,
    /// When the process started.
    pub started_at: Timestamp,
}

/// The tick of one process.
pub struct Tick {
    deps: TickDeps,
    completed: AtomicU64,
    failed: AtomicU64,
}

/// What a tick did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Messages that channels brought.
    pub messages: u64,
    /// Channels that could not be polled.
    pub channels_failed: u64,
    /// What went, past its retention.
    pub deleted: DeletedRows,
}

/// A tick that failed. The next one is not affected.
#[derive(Debug, thiserror::Error)]
#[error("the tick failed: {}", self.0.join("; "))]
pub struct TickError(Vec<String>);

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tick").field("process", &self.deps.process).finish_non_exhaustive()
    }
}

impl Tick {
    /// The tick of this process.
    pub fn new(deps: TickDeps) -> Self {
        Self { deps, completed: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// Runs one tick: polls the channels, takes the picture, deletes what is past its retention. A step that fails or takes
    /// longer than [`STEP_TIME`] is not tried again, and does not keep the others from being done. Dropping the future
    /// leaves nothing half done; the next tick goes on where this one was.
    /// Errors: what failed, for the log; it is counted, and logged here.
    pub async fn run(&self) -> Result<TickReport, TickError> {
        let mut problems = Vec::new();
        let mut report = TickReport::default();
        match in_time("poll_channels", poll::run(&self.deps.channels)).await {
            Ok(polled) => (report.messages, report.channels_failed) = polled,
            Err(problem) => problems.push(problem),
        }
        let picture = in_time("monitor_snapshot", async { monitor::run(self).await.map_err(store_failed) });
        problems.extend(picture.await.err());
        let sweep = in_time("retention_sweep", async { sweep::run(&self.deps).await.map_err(store_failed) });
        match sweep.await {
            Ok(deleted) => report.deleted = deleted,
            Err(problem) => problems.push(problem),
        }
        if problems.is_empty() {
            self.completed.fetch_add(1, Ordering::Relaxed);
            return Ok(report);
        }
        let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        let error = TickError(problems);
        tracing::warn!(%error, failed, "a tick failed; the next one is not affected");
        Err(error)
    }

    /// Ticks of this process that completed.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Ticks of this process that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Bounds a step, and names it in its error.
async fn in_time<T>(step: &str, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(STEP_TIME, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(problem)) => Err(format!("{step}: {problem}")),
        Err(_) => Err(format!("{step}: not done within {STEP_TIME:?}")),
    }
}

fn store_failed(error: StoreError) -> String {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
