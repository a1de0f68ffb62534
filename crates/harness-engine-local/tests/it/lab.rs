//! Local engines over any store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use harness_engine_local::{EngineOptions, EngineParts, LocalEngine};
use harness_model::Timestamp;
use harness_ports::{
    Clock, Engine, IdSource, Store,
    conformance::{
        engine::{EngineLab, EngineLife, LifePlan, Trouble},
        store::StoreHome,
    },
};
use harness_testkit::{Fault, FaultStore};
use tokio::time::Instant;

/// A store and the engines that live over it, one after another.
pub(crate) struct LocalLab {
    home: Arc<dyn StoreHome>,
    options: EngineOptions,
    clock: Arc<SteadyClock>,
    ids: Arc<CountingIds>,
    /// A crowd is this many times smaller than over a file.
    crowds_divided_by: usize,
}

impl LocalLab {
    pub(crate) fn new(home: impl StoreHome + 'static, options: EngineOptions) -> Self {
        Self {
            home: Arc::new(home),
            options,
            clock: Arc::default(),
            ids: Arc::default(),
            crowds_divided_by: 1,
        }
    }

    /// For a store that takes its time.
    pub(crate) fn with_small_crowds(mut self) -> Self {
        self.crowds_divided_by = 8;
        self
    }

    pub(crate) async fn start(&self, plan: LifePlan) -> LocalLife {
        let store = self.home.open().await;
        let faulty = FaultStore::over(Arc::clone(&store), fault(plan.trouble));
        let parts = EngineParts {
            store: Arc::clone(&faulty) as _,
            activities: plan.activities,
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
            workflows: plan.workflows,
        };
        let engine = LocalEngine::start(parts, self.options.clone());
        LocalLife { engine, store, faulty, home: Arc::clone(&self.home) }
    }
}

impl EngineLab for LocalLab {
    fn open(&self, plan: LifePlan) -> BoxFuture<'_, Box<dyn EngineLife>> {
        Box::pin(async move { Box::new(self.start(plan).await) as _ })
    }

    fn crowd(&self, fast: usize) -> usize {
        fast.div_ceil(self.crowds_divided_by)
    }
}

/// The usual limits, with waits that suit tests.
pub(crate) fn usual() -> EngineOptions {
    EngineOptions {
        cancel_grace: Duration::from_millis(100),
        drain_cutoff: Duration::from_millis(100),
        ..EngineOptions::default()
    }
}

/// Nothing is kept, nothing is done together, and everybody waits for a place.
pub(crate) fn frugal() -> EngineOptions {
    EngineOptions { inbox_capacity: 1, batch_inputs_max: 1, warm_workflows_max: 0, ..usual() }
}

fn fault(trouble: Trouble) -> Fault {
    match trouble {
        Trouble::None => Fault::None,
        Trouble::DieBefore(commit) => Fault::DieBefore(commit),
        Trouble::DieAfter(commit) => Fault::DieAfter(commit),
        Trouble::Fail { first, last } => Fault::Fail { first, last },
    }
}

/// One engine.
pub(crate) struct LocalLife {
    engine: Arc<LocalEngine>,
    store: Arc<dyn Store>,
    faulty: Arc<FaultStore>,
    home: Arc<dyn StoreHome>,
}

impl LocalLife {
    /// How many commits the engine has begun.
    pub(crate) fn commits(&self) -> u64 {
        self.faulty.commits()
    }
}

impl EngineLife for LocalLife {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine) as _
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    fn workflows_in_memory(&self) -> usize {
        self.engine.workflows_in_memory()
    }

    fn died(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.faulty.death().cancelled_owned())
    }

    fn drain(&self, grace: Duration) -> BoxFuture<'_, bool> {
        Box::pin(self.engine.drain(grace))
    }

    fn kill(self: Box<Self>) -> BoxFuture<'static, ()> {
        let Self { engine, store, faulty, home } = *self;
        // From here on nothing reaches the store; what is left to do is to get rid of the futures.
        faulty.die();
        Box::pin(async move {
            engine.drain(Duration::ZERO).await;
            drop((engine, store, faulty));
            home.close().await;
        })
    }
}

/// Goes on evenly over all lives of a lab.
struct SteadyClock(Instant);

impl Default for SteadyClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.0.elapsed())
    }
}

#[derive(Default)]
struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn fresh(&self) -> String {
        self.0.fetch_add(1, Ordering::Relaxed).to_string()
    }
}
