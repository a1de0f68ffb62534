//! The Temporal worker of this process.

use std::{thread, time::Duration};

use temporalio_client::Client;
use temporalio_sdk::{Runtime, Worker, WorkerOptions, runtime::RuntimeOptions};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{EngineOptions, activities::Activities, workflow::TaskWorkflow};

/// How long a workflow task may wait for the worker that has the workflow in memory, before any other takes it.
const STICKY_LIMIT: Duration = Duration::from_secs(1);
/// Longest time between two signs of life that reach the server; it answers them with cancellations.
const BEAT_MAX: Duration = Duration::from_secs(1);

/// A worker on a thread of its own: its future stays on one thread, as its workflows do.
pub(crate) struct WorkerThread {
    stop: CancellationToken,
    /// Ends with the worker.
    ended: tokio::sync::Mutex<Option<oneshot::Receiver<()>>>,
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
#[error("the Temporal worker cannot start: {reason}")]
pub(crate) struct WorkerError {
    reason: String,
}

impl WorkerThread {
    /// Starts a worker and returns once it is set up. Must be called inside a Tokio runtime of several threads.
    pub(crate) async fn start(
        client: Client,
        activities: Activities,
        options: &EngineOptions,
        drain_grace: Duration,
    ) -> Result<Self, WorkerError> {
        let stop = CancellationToken::new();
        let (ready, is_ready) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let handle = tokio::runtime::Handle::current();
        let (token, options) = (stop.clone(), options.clone());
        let spawned = thread::Builder::new().name("temporal-worker".to_owned()).spawn(move || {
            handle.block_on(run(client, activities, options, drain_grace, token, ready));
            let _nobody_waits = end.send(());
        });
        let failed = |reason: String| WorkerError { reason };
        spawned.map_err(|error| failed(error.to_string()))?;
        is_ready.await.map_err(|_| failed("its thread ended".to_owned()))?.map_err(failed)?;
        Ok(Self { stop, ended: tokio::sync::Mutex::new(Some(ended)) })
    }

    /// Takes no more tasks; those that run go on.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits at most `limit` for the end. A thread that does not end by then is left to the end of the process.
    pub(crate) async fn ended(&self, limit: Duration) -> bool {
        let mut ended = self.ended.lock().await;
        let Some(receiver) = ended.as_mut() else { return true };
        if tokio::time::timeout(limit, receiver).await.is_err() {
            return false;
        }
        *ended = None;
        true
    }
}

async fn run(
    client: Client,
    activities: Activities,
    options: EngineOptions,
    drain_grace: Duration,
    stop: CancellationToken,
    ready: oneshot::Sender<Result<(), String>>,
) {
    let mut worker = match build(client, activities, &options, drain_grace) {
        Ok(worker) => worker,
        Err(error) => {
            let _nobody_waits = ready.send(Err(error));
            return;
        }
    };
    let shut_down = worker.shutdown_handle();
    let _nobody_waits = ready.send(Ok(()));
    let mut asked = std::pin::pin!(stop.cancelled());
    let mut running = std::pin::pin!(worker.run());
    let result = tokio::select! {
        biased;
        () = &mut asked => {
            shut_down();
            running.await
        }
        result = &mut running => result,
    };
    match result {
        Ok(()) if !stop.is_cancelled() => tracing::error!("the Temporal worker ended by itself"),
        Ok(()) => {}
        Err(error) => tracing::error!(%error, "the Temporal worker failed"),
    }
}

fn build(
    client: Client,
    activities: Activities,
    options: &EngineOptions,
    drain_grace: Duration,
) -> Result<Worker, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default()).map_err(|error| text(&error))?;
    let (prefix, heartbeat) =
        (options.id_prefix.clone(), options.heartbeat_timeout.max(Duration::from_secs(1)));
    let worker = WorkerOptions::new(options.task_queue.clone())
        .max_cached_workflows(options.cached_workflows_max)
        .sticky_queue_schedule_to_start_timeout(STICKY_LIMIT)
        .max_heartbeat_throttle_interval(BEAT_MAX)
        .graceful_shutdown_period(drain_grace)
        .register_activities(activities)
        .register_workflow_with_factory::<TaskWorkflow, _>(move || {
            TaskWorkflow::new(prefix.clone(), heartbeat)
        })
        .map_err(|error| text(&error))?
        .build();
    Worker::new(&runtime, client, worker).map_err(|error| text(&error))
}
