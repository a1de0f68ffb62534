//! The engine as its users see it.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_journal::{Host, HostParts};
use harness_ports::{
    ActivityHost, Capabilities, Clock, Delivered, Delivery, Engine, EngineError, IdSource, Store,
    WorkflowDefinition,
};

use crate::{
    Address, ConnectError, EngineOptions, Hands, activities::Activities, connection::connect,
    driver::TemporalDriver, reporter::Reporter, running::Running, wakes::Wakes, worker::WorkerThread,
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
}

impl fmt::Debug for EngineParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> = self.workflows.iter().map(|definition| definition.workflow_type()).collect();
        f.debug_struct("EngineParts").field("workflows", &types).finish_non_exhaustive()
    }
}

/// An engine on Temporal. Stops only through [`TemporalEngine::drain`].
pub struct TemporalEngine {
    host: Arc<Host>,
    wakes: Arc<Wakes>,
    worker: Option<WorkerThread>,
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
            label_agent: options.search_attributes_of.clone(),
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
            client.clone(),
            reporter.clone(),
            options.task_queue.clone(),
            options.id_prefix.clone(),
        );
        drop(driver.wakes.set(Arc::clone(&wakes)));
        let worker = if options.hands == Hands::None {
            None
        } else {
            let activities = Activities { host: Arc::clone(&host), reporter, running };
            let started = WorkerThread::start(client, activities, &options, DRAIN_GRACE_MAX).await;
            Some(started.map_err(|error| ConnectError::Unreachable {
                target: address.target.clone(),
                reason: error.to_string(),
            })?)
        };
        wakes.sweep(options.sweep_interval, options.hands != Hands::None);
        Ok(Arc::new(Self { host, wakes, worker, drain_cutoff: options.drain_cutoff }))
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

    /// How many workflows of the journal have state in memory now.
    pub fn workflows_in_memory(&self) -> usize {
        self.host.workflows_in_memory()
    }
}

impl Engine for TemporalEngine {
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Delivered, EngineError>> {
        Box::pin(async move {
            if self.host.is_draining() {
                return Err(EngineError::Stopping);
            }
            self.host.deliver(delivery).await
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_publish: true, many_workers: true, unbegun_waits: true, losses_first: false }
    }
}
