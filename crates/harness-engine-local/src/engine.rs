//! The engine as its users see it.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_journal::{Host, HostParts};
use harness_ports::{
    ActivityHost, Capabilities, Clock, Delivered, Delivery, Engine, EngineError, IdSource, Store, TaskGroup,
    WorkflowDefinition,
};

use crate::{EngineOptions, driver::LocalDriver, recovery, timer_service, timer_service::TimerAlarm};

/// What an engine is made of.
pub struct EngineParts {
    /// Keeps everything. No other engine may host workflows of this store at the same time.
    pub store: Arc<dyn Store>,
    /// Runs the activities.
    pub activities: Arc<dyn ActivityHost>,
    /// Gives events their time and tells when timers are due.
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

/// An engine inside this process. Stops only through [`LocalEngine::drain`].
pub struct LocalEngine {
    host: Arc<Host>,
    /// The loops: recovery and timers.
    background: TaskGroup,
    drain_cutoff: Duration,
}

impl fmt::Debug for LocalEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEngine").field("in_memory", &self.workflows_in_memory()).finish_non_exhaustive()
    }
}

impl LocalEngine {
    /// Starts an engine: takes deliveries at once, and meanwhile brings back what an earlier process left unfinished.
    /// Must be called inside a Tokio runtime.
    pub fn start(parts: EngineParts, options: EngineOptions) -> Arc<Self> {
        let alarm = Arc::new(TimerAlarm::default());
        let host = Host::new(
            HostParts {
                store: parts.store,
                activities: parts.activities,
                clock: parts.clock,
                ids: parts.ids,
                workflows: parts.workflows,
                driver: Arc::new(LocalDriver::new(options.activities_running_max, Arc::clone(&alarm))),
            },
            options.host(),
        );
        let background = TaskGroup::new();
        background.spawn(recovery::run(Arc::clone(&host), background.stop_token().clone()));
        background.spawn(timer_service::run(Arc::clone(&host), alarm, background.stop_token().clone()));
        Arc::new(Self { host, background, drain_cutoff: options.drain_cutoff })
    }

    /// Stops the engine. From the call on deliveries are answered with `Stopping`. Activities that run may end within
    /// `grace`, and their ends are recorded; what follows from them is begun only if it could not be run again later.
    /// What still runs then is stopped and its end is *not* recorded: to the workflows it looks as if the process had
    /// died, so nothing is ever canceled by a drain. Takes little longer than `grace`.
    ///
    /// Returns whether everything that ran has ended by itself.
    pub async fn drain(&self, grace: Duration) -> bool {
        let (host, cutoff) = (&self.host, self.drain_cutoff);
        host.work.stop_token().cancel();
        let mut ended = self.background.shutdown(cutoff).await;
        ended &= host.work.shutdown(grace).await;
        host.close();
        host.halt.cancel();
        if !host.work.shutdown(cutoff).await {
            host.abandon.cancel();
            ended &= host.work.shutdown(cutoff).await;
        }
        ended
    }

    /// How many workflows have state in memory now: those with something to do, and a bounded number of warm ones.
    pub fn workflows_in_memory(&self) -> usize {
        self.host.workflows_in_memory()
    }
}

impl Engine for LocalEngine {
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Delivered, EngineError>> {
        Box::pin(async move {
            if self.host.is_draining() {
                return Err(EngineError::Stopping);
            }
            self.host.deliver(delivery).await
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_publish: true, many_workers: false, unbegun_waits: false, losses_first: true }
    }
}
