//! The engine as its users see it.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_journal::{Host, HostParts};
use harness_model::WorkflowId;
use harness_ports::{
    ActivityHost, Capabilities, Clock, Delivered, Delivery, Engine, EngineError, IdSource, Store,
    WorkflowDefinition,
};
use temporalio_client::Client;

use crate::{
    Address, AdminError, ConnectError, EngineOptions, Hands, Heartbeat,
    activities::Activities,
    asides::Asides,
    connection::connect,
    contact::Contact,
    driver::TemporalDriver,
    heartbeat, labels,
    meter::Failures,
    reporter::Reporter,
    running::Running,
    terminate,
    wakes::{Wakes, Ways},
    worker::WorkerThread,
};

/// How long activities may go on when nobody says otherwise.
const DRAIN_GRACE_MAX: Duration = Duration::from_secs(3_600);

/// What an engine is made of.
pub struct EngineParts {
    /// Keeps everything; shared by every process of the agent.
    pub store: Arc<dyn Store>,
    /// Runs the activities.
    pub activities: Arc<dyn ActivityHost>,
    /// Gives events their time.
    pub clock: Arc<dyn Clock>,
    /// Names executions of activities.
    pub ids: Arc<dyn IdSource>,
    /// The workflow types this engine hosts.
    pub workflows: Vec<Arc<dyn WorkflowDefinition>>,
    /// What a worker does when the heartbeat schedule says so; see [`TemporalEngine::ensure_heartbeat`].
    pub heartbeat: Option<Arc<dyn Heartbeat>>,
}

impl fmt::Debug for EngineParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> = self.workflows.iter().map(|definition| definition.workflow_type()).collect();
        f.debug_struct("EngineParts").field("workflows", &types).finish_non_exhaustive()
    }
}

/// An engine on Temporal. Stops only through [`TemporalEngine::drain`].
pub struct TemporalEngine {
    pub(crate) host: Arc<Host>,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) worker: Option<WorkerThread>,
    pub(crate) failures: Failures,
    pub(crate) asides: Asides,
    drain_cutoff: Duration,
}

impl fmt::Debug for TemporalEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporalEngine").field("worker", &self.worker.is_some()).finish_non_exhaustive()
    }
}

impl TemporalEngine {
    /// Connects, and starts a worker if this process is to be one. Must be called inside a Tokio runtime of several
    /// threads. Errors: see [`ConnectError`].
    pub async fn start(
        parts: EngineParts,
        address: &Address,
        options: EngineOptions,
    ) -> Result<Arc<Self>, ConnectError> {
        let client = connect(address).await?;
        let running = Arc::new(Running::default());
        let driver = Arc::new(TemporalDriver::new(Arc::clone(&running)));
        let reporter = Reporter {
            epoch: (options.hands == Hands::OnlyWorker).then(|| parts.ids.fresh()),
            label_agent: label_agent(&client, &options).await,
            run_events_max: options.run_events_max,
        };
        let host = Host::new(
            HostParts {
                store: parts.store,
                activities: parts.activities,
                clock: parts.clock,
                ids: parts.ids,
                workflows: parts.workflows,
                driver: Arc::clone(&driver) as _,
            },
            options.host.clone(),
        );
        let wakes = Wakes::new(
            Arc::clone(&host),
            reporter.clone(),
            Ways {
                client: client.clone(),
                task_queue: options.task_queue.clone(),
                id_prefix: options.id_prefix.clone(),
            },
            Contact::new(options.sweep_interval),
        );
        drop(driver.wakes.set(Arc::clone(&wakes)));
        let (failures, asides) = (Failures::default(), Asides::default());
        let worker = if options.hands == Hands::None {
            None
        } else {
            let activities = Activities {
                host: Arc::clone(&host),
                reporter,
                running,
                asides: asides.clone(),
                heartbeat: parts.heartbeat,
            };
            let started =
                WorkerThread::start(client, activities, failures.clone(), &options, DRAIN_GRACE_MAX).await;
            Some(started.map_err(|error| ConnectError::Unreachable {
                target: address.target.clone(),
                reason: error.to_string(),
            })?)
        };
        wakes.sweep(options.sweep_interval);
        wakes.keep_in_touch(options.sweep_interval);
        if options.hands != Hands::None {
            wakes.audit(options.audit_interval);
        }
        Ok(Arc::new(Self { host, wakes, worker, failures, asides, drain_cutoff: options.drain_cutoff }))
    }

    /// Makes the schedule by which one of the workers ticks every `interval`, at least 1 s. One that is there stays as it
    /// is. Errors: see [`AdminError`].
    pub async fn ensure_heartbeat(&self, interval: Duration) -> Result<(), AdminError> {
        let Ways { client, task_queue, id_prefix } = &self.wakes.ways;
        heartbeat::ensure(client, id_prefix, task_queue, interval).await
    }

    /// Stops the engine. From the call on deliveries are answered with `Stopping`. Activities that run may end within
    /// `grace`, and their ends are recorded. What still runs then is stopped and its end is *not* recorded: another
    /// worker, or the next one, runs it again or reports it unknown. Takes little longer than `grace`.
    ///
    /// Returns whether everything that ran has ended by itself.
    pub async fn drain(&self, grace: Duration) -> bool {
        let (host, cutoff) = (&self.host, self.drain_cutoff);
        host.work.stop_token().cancel();
        let mut ended = true;
        if let Some(worker) = &self.worker {
            worker.stop();
            ended &= worker.ended(grace).await;
        }
        ended &= self.wakes.stop(cutoff).await;
        ended &= host.work.shutdown(cutoff).await;
        host.close();
        host.halt.cancel();
        if let Some(worker) = &self.worker
            && !worker.ended(cutoff).await
        {
            host.abandon.cancel();
            ended &= worker.ended(cutoff).await;
        }
        ended &= host.work.shutdown(cutoff).await;
        ended
    }

    /// Waits until the worker of this process has ended, by itself or because it was told to; without one it waits forever.
    /// One that ends by itself is not started again: end the process.
    pub async fn worker_ended(&self) {
        match &self.worker {
            Some(worker) => worker.over().await,
            None => std::future::pending().await,
        }
    }

    /// How many workflows of the journal have state in memory now.
    pub fn workflows_in_memory(&self) -> usize {
        self.host.workflows_in_memory()
    }
}

/// Labels that the namespace does not know would stop every workflow.
async fn label_agent(client: &Client, options: &EngineOptions) -> Option<String> {
    let agent = options.search_attributes_of.clone()?;
    if labels::are_registered(client).await {
        return Some(agent);
    }
    tracing::warn!("the namespace does not know the search attributes; tasks cannot be found by them");
    None
}

impl Engine for TemporalEngine {
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Delivered, EngineError>> {
        Box::pin(async move {
            if self.host.is_draining() {
                return Err(EngineError::Stopping);
            }
            let workflow_id = delivery.workflow_id.clone();
            let receipt = self.host.deliver(delivery).await;
            if self.host.is_set_aside(&workflow_id) {
                self.asides.add(&workflow_id);
            }
            receipt
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_publish: true, many_workers: true, unbegun_waits: true, losses_first: false }
    }

    fn outage(&self) -> Option<String> {
        let silence = self.wakes.contact.lost_for()?;
        Some(format!("Temporal has not answered for {} s", silence.as_secs()))
    }

    fn forget<'a>(&'a self, workflow_id: &'a WorkflowId) -> BoxFuture<'a, Result<(), EngineError>> {
        let ways = &self.wakes.ways;
        Box::pin(async move {
            let ended = terminate::end(&ways.client, ways.id_of(workflow_id)).await;
            ended.map(drop).map_err(|error| EngineError::Unavailable(error.to_string()))
        })
    }
}
