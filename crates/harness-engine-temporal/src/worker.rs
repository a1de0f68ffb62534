//! The Temporal worker of this process.

use std::{sync::Arc, thread, time::Duration};

use temporalio_client::Client;
use temporalio_common::telemetry::{TelemetryOptions, metrics::CoreMeter};
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::{
        RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    EngineOptions,
    activities::Activities,
    heartbeat::HeartbeatWorkflow,
    meter::{Failures, Meter},
    workflow::TaskWorkflow,
};

/// How long a workflow task may wait for the worker that has the workflow in memory, before any other takes it.
const STICKY_LIMIT: Duration = Duration::from_secs(1);
/// Longest time between two signs of life that reach the server; it answers them with cancellations.
const BEAT_MAX: Duration = Duration::from_secs(1);

/// Workflow tasks, and orders to the host, that are in hand at once.
const SLOTS: usize = 100;

/// A worker on a thread of its own: its future stays on one thread, as its workflows do.
pub(crate) struct WorkerThread {
    stop: CancellationToken,
    over: CancellationToken,
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
        failures: Failures,
        options: &EngineOptions,
        drain_grace: Duration,
    ) -> Result<Self, WorkerError> {
        let (stop, over) = (CancellationToken::new(), CancellationToken::new());
        let (ready, is_ready) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let handle = tokio::runtime::Handle::current();
        let (token, options, runs) = (stop.clone(), options.clone(), over.clone().drop_guard());
        let spawned = thread::Builder::new().name("temporal-worker".to_owned()).spawn(move || {
            handle.block_on(async {
                let worker = build(client, activities, failures, &options, drain_grace);
                run(worker, token, ready).await;
            });
            drop(runs);
            let _nobody_waits = end.send(());
        });
        let failed = |reason: String| WorkerError { reason };
        spawned.map_err(|error| failed(error.to_string()))?;
        is_ready.await.map_err(|_| failed("its thread ended".to_owned()))?.map_err(failed)?;
        Ok(Self { stop, over, ended: tokio::sync::Mutex::new(Some(ended)) })
    }

    /// Whether it works.
    pub(crate) fn is_running(&self) -> bool {
        !self.over.is_cancelled()
    }

    /// Waits until it does not work any more.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
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
    worker: Result<Worker, String>,
    stop: CancellationToken,
    ready: oneshot::Sender<Result<(), String>>,
) {
    let mut worker = match worker {
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
    failures: Failures,
    options: &EngineOptions,
    drain_grace: Duration,
) -> Result<Worker, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let meter: Arc<dyn CoreMeter> = Arc::new(Meter(failures));
    let telemetry = TelemetryOptions::builder().metrics(meter).build();
    let runtime = RuntimeOptions::builder().telemetry_options(telemetry).build()?;
    let runtime = Runtime::from_current_tokio(runtime).map_err(|error| text(&error))?;
    let slots = FixedSizeSlotSupplier::new;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(slots(SLOTS))
        .activity_task_slot_supplier(slots(options.activities_running_max.max(1)))
        .local_activity_task_slot_supplier(slots(SLOTS))
        .nexus_task_slot_supplier(slots(1))
        .build();
    let (prefix, heartbeat) =
        (options.id_prefix.clone(), options.heartbeat_timeout.max(Duration::from_secs(1)));
    let worker = WorkerOptions::new(options.task_queue.clone())
        .tuner(tuner)
        .max_cached_workflows(options.cached_workflows_max)
        .sticky_queue_schedule_to_start_timeout(STICKY_LIMIT)
        .max_heartbeat_throttle_interval(BEAT_MAX)
        .graceful_shutdown_period(drain_grace)
        .register_activities(activities)
        .register_workflow_with_factory::<TaskWorkflow, _>(move || {
            TaskWorkflow::new(prefix.clone(), heartbeat)
        })
        .map_err(|error| text(&error))?
        .register_workflow::<HeartbeatWorkflow>()
        .map_err(|error| text(&error))?
        .build();
    Worker::new(&runtime, client, worker).map_err(|error| text(&error))
}
