//! Temporal engines over any store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::future::BoxFuture;
use harness_engine_temporal::{Address, EngineOptions, EngineParts, Hands, TemporalEngine};
use harness_journal::HostOptions;
use harness_model::Timestamp;
use harness_ports::{
    Clock, Engine, IdSource, Store,
    conformance::{
        engine::{EngineLab, EngineLife, LifePlan, Trouble},
        store::StoreHome,
    },
};
use harness_testkit::{Fault, FaultStore, TemporalServer};

/// The dev server takes some dozens of workflows in a second.
const CROWD_MAX: usize = 200;

/// A store, a Temporal server, and the engines that live over them, one after another.
pub(crate) struct TemporalLab {
    home: Arc<dyn StoreHome>,
    server: TemporalServer,
    hands: Hands,
    clock: Arc<DayClock>,
    ids: Arc<CountingIds>,
}

impl TemporalLab {
    pub(crate) async fn new(home: impl StoreHome + 'static, hands: Hands) -> Option<Self> {
        let server = TemporalServer::start().await?;
        Some(Self { home: Arc::new(home), server, hands, clock: Arc::default(), ids: Arc::default() })
    }

    pub(crate) async fn start(&self, plan: LifePlan) -> TemporalLife {
        let store = self.home.open().await;
        let faulty = FaultStore::over(Arc::clone(&store), fault(plan.trouble));
        let parts = EngineParts {
            store: Arc::clone(&faulty) as _,
            activities: plan.activities,
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
            workflows: plan.workflows,
            heartbeat: None,
        };
        let address = Address {
            target: self.server.address().to_string(),
            namespace: self.server.namespace().to_owned(),
            tls: None,
            api_key: None,
            identity: "suite".to_owned(),
        };
        let options = EngineOptions {
            heartbeat_timeout: Duration::from_secs(1),
            sweep_interval: Duration::from_millis(200),
            drain_cutoff: Duration::from_millis(100),
            host: HostOptions { cancel_grace: Duration::from_millis(100), ..HostOptions::default() },
            ..EngineOptions::new("suite", self.hands)
        };
        let engine = TemporalEngine::start(parts, &address, options).await.unwrap();
        TemporalLife { engine, store, faulty, home: Arc::clone(&self.home) }
    }
}

impl EngineLab for TemporalLab {
    fn open(&self, plan: LifePlan) -> BoxFuture<'_, Box<dyn EngineLife>> {
        Box::pin(async move { Box::new(self.start(plan).await) as _ })
    }

    fn crowd(&self, fast: usize) -> usize {
        fast.div_ceil(20).min(CROWD_MAX)
    }
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
pub(crate) struct TemporalLife {
    engine: Arc<TemporalEngine>,
    store: Arc<dyn Store>,
    faulty: Arc<FaultStore>,
    home: Arc<dyn StoreHome>,
}

impl EngineLife for TemporalLife {
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

/// The time of day, because the server sees it too.
#[derive(Default)]
pub(crate) struct DayClock;

impl Clock for DayClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap())
    }
}

#[derive(Default)]
pub(crate) struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn fresh(&self) -> String {
        self.0.fetch_add(1, Ordering::Relaxed).to_string()
    }
}
