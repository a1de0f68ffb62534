//! The engine as its users see it.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_ports::{
    ActivityHost, Capabilities, Clock, Delivered, Delivery, Engine, EngineError, IdSource, Store, TaskGroup,
    WorkflowDefinition,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    EngineOptions, context::EngineContext, recovery, registry::Registry, timer_service,
    timer_service::TimerAlarm,
};

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
    context: Arc<EngineContext>,
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
        let definitions: HashMap<_, _> =
            parts.workflows.into_iter().map(|definition| (definition.workflow_type(), definition)).collect();
        let context = Arc::new(EngineContext {
            store: parts.store,
            activities: parts.activities,
            clock: parts.clock,
            ids: parts.ids,
            definitions,
            registry: Registry::new(options.inbox_capacity, options.warm_workflows_max),
            alarm: TimerAlarm::default(),
            activity_places: Arc::new(Semaphore::new(options.activities_running_max.max(1))),
            work: TaskGroup::new(),
            background: TaskGroup::new(),
            halt: CancellationToken::new(),
            abandon: CancellationToken::new(),
            options,
        });
        context.background.spawn(recovery::run(Arc::clone(&context)));
        context.background.spawn(timer_service::run(Arc::clone(&context)));
        Arc::new(Self { context })
    }

    /// Stops the engine. From the call on deliveries are answered with `Stopping`. Activities that run may end within
    /// `grace`, and their ends are recorded; what follows from them is begun only if it could not be run again later.
    /// What still runs then is stopped and its end is *not* recorded: to the workflows it looks as if the process had
    /// died, so nothing is ever canceled by a drain. Takes little longer than `grace`.
    ///
    /// Returns whether everything that ran has ended by itself.
    pub async fn drain(&self, grace: Duration) -> bool {
        let context = &self.context;
        let cutoff = context.options.drain_cutoff;
        context.work.stop_token().cancel();
        let mut ended = context.background.shutdown(cutoff).await;
        ended &= context.work.shutdown(grace).await;
        context.registry.close();
        context.halt.cancel();
        if !context.work.shutdown(cutoff).await {
            context.abandon.cancel();
            ended &= context.work.shutdown(cutoff).await;
        }
        ended
    }

    /// How many workflows have state in memory now: those with something to do, and a bounded number of warm ones.
    pub fn workflows_in_memory(&self) -> usize {
        self.context.registry.len()
    }
}

impl Engine for LocalEngine {
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Delivered, EngineError>> {
        Box::pin(async move {
            if self.context.is_draining() {
                return Err(EngineError::Stopping);
            }
            self.context.deliver(delivery).await
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_publish: true, many_workers: false }
    }
}
