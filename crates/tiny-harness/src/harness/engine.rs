//! Which engine runs the tasks: the local one, or Temporal.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_activities::{EngineFacts, EngineWatch, Tick};
use harness_engine_local::{EngineOptions, EngineParts, LocalEngine};
use harness_ports::{ActivityHost, Clock, Engine, IdSource, Store, StoreError, WorkflowDefinition};

use crate::{config::Config, failure::Failure};

/// What a process of the harness does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Talks to clients and works.
    ServerAndWorker,
    /// Talks to clients; workers are other processes.
    Server,
    /// Works; servers are other processes.
    Worker,
}

impl Role {
    /// Whether it listens.
    pub(crate) fn serves(self) -> bool {
        self != Self::Worker
    }
}

/// What every engine needs.
pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    pub(super) activities: Arc<dyn ActivityHost>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) workflows: Vec<Arc<dyn WorkflowDefinition>>,
    /// What an engine with schedules does when its schedule says so.
    #[cfg_attr(not(feature = "temporal"), expect(dead_code, reason = "the local engine has no schedules"))]
    pub(super) tick: Arc<Tick>,
}

/// The engine as the tick sees it. The tick comes first: an engine with schedules gets it with its parts.
#[derive(Default)]
pub(super) struct EngineSlot {
    #[cfg(feature = "temporal")]
    pub(super) temporal: Option<super::temporal::Watch>,
}

impl EngineSlot {
    /// For the engine that the configuration asks for.
    #[cfg_attr(not(feature = "temporal"), expect(unused_variables, reason = "there is one engine only"))]
    pub(super) fn of(config: &Config) -> Arc<Self> {
        Arc::new(Self {
            #[cfg(feature = "temporal")]
            temporal: config.temporal.as_ref().map(|_| super::temporal::Watch::default()),
        })
    }

    /// From now on this engine is seen.
    #[cfg_attr(not(feature = "temporal"), expect(unused_variables, reason = "there is one engine only"))]
    pub(super) fn fill(&self, engine: &RunningEngine) {
        #[cfg(feature = "temporal")]
        if let (Some(watch), RunningEngine::Temporal(running)) = (&self.temporal, engine) {
            watch.see(&running.engine);
        }
    }
}

impl EngineWatch for EngineSlot {
    fn look(&self) -> BoxFuture<'_, Result<EngineFacts, StoreError>> {
        #[cfg(feature = "temporal")]
        if let Some(watch) = &self.temporal {
            return Box::pin(watch.look());
        }
        Box::pin(async { Ok(EngineFacts { kind: "local", ..EngineFacts::default() }) })
    }
}

/// The engine of this process.
pub(super) enum RunningEngine {
    Local(Arc<LocalEngine>),
    #[cfg(feature = "temporal")]
    Temporal(super::temporal::RunningTemporal),
}

impl RunningEngine {
    /// Starts the engine that the configuration asks for.
    #[cfg_attr(not(feature = "temporal"), expect(clippy::unused_async, reason = "the other engine connects"))]
    pub(super) async fn start(config: &Config, role: Role, parts: Parts) -> Result<Self, Failure> {
        #[cfg(feature = "temporal")]
        if let Some(temporal) = &config.temporal {
            return super::temporal::start(config, temporal, role, parts).await.map(Self::Temporal);
        }
        let _ = (config, role);
        let parts = EngineParts {
            store: parts.store,
            activities: parts.activities,
            clock: parts.clock,
            ids: parts.ids,
            workflows: parts.workflows,
        };
        Ok(Self::Local(LocalEngine::start(parts, EngineOptions::default())))
    }

    /// Whether it ticks by itself, on a schedule that its workers share.
    pub(super) fn has_schedules(&self) -> bool {
        match self {
            Self::Local(_) => false,
            #[cfg(feature = "temporal")]
            Self::Temporal(_) => true,
        }
    }

    /// Waits until it can work no more, though nobody stopped it.
    pub(super) async fn failed(&self) {
        match self {
            Self::Local(_) => std::future::pending().await,
            #[cfg(feature = "temporal")]
            Self::Temporal(running) => running.engine.worker_ended().await,
        }
    }

    /// The engine as servers see it.
    pub(super) fn port(&self) -> Arc<dyn Engine> {
        match self {
            Self::Local(engine) => Arc::clone(engine) as _,
            #[cfg(feature = "temporal")]
            Self::Temporal(running) => Arc::clone(&running.engine) as _,
        }
    }

    /// Stops it within `grace` and a little more. Returns whether everything ended by itself.
    pub(super) async fn stop(self, grace: Duration) -> bool {
        match self {
            Self::Local(engine) => engine.drain(grace).await,
            #[cfg(feature = "temporal")]
            Self::Temporal(running) => running.stop(grace).await,
        }
    }
}

/// Whether these parts of the configuration fit what a process is asked to do.
/// Errors: wrong usage, with what to do instead.
pub(crate) fn check_role(config: &Config, role: Role) -> Result<(), Failure> {
    let embedded = |temporal: &crate::config::TemporalConfig| {
        temporal.table.mode == crate::config::TemporalMode::Embedded
    };
    match (&config.temporal, role) {
        (_, Role::ServerAndWorker) => Ok(()),
        (None, Role::Worker) => Err(Failure::usage(
            "the local engine works inside `serve`; a worker of its own needs [temporal] in the configuration",
        )),
        (Some(temporal), Role::Worker) if embedded(temporal) => Err(Failure::usage(
            "with an embedded Temporal the worker lives in `serve`; a worker of its own needs `mode = \"remote\"` (temporal.mode)",
        )),
        (Some(_), Role::Worker | Role::Server) if !super::store_is_shared(config) => Err(Failure::usage(
            "a store in SQLite belongs to one process, which has to do both: use `serve --with-worker`, or a store that \
             processes share ([store.postgres])",
        )),
        (_, Role::Worker | Role::Server) => Ok(()),
    }
}
