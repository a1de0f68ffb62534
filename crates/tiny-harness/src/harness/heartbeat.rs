//! The tick of this process, and the timer that calls it where no engine with schedules does.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_activities::{EngineWatch, Outbox, ProcessInfo, Retention, Tick, TickDeps};
use harness_model::{BlockId, Timestamp};
use harness_ports::{Clock, Store, StoreError, TaskGroup};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::config::Config;

/// The first tick comes this long after the start, so that what the start itself does is over.
const FIRST_TICK: Duration = Duration::from_secs(2);
/// Hex digits of the hash of the host's name.
const HOST_DIGITS: usize = 12;

/// The tick over this store.
pub(super) fn tick(
    config: &Config,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    engine: Arc<dyn EngineWatch>,
) -> Arc<Tick> {
    let retention = Retention {
        tasks: config.retention.tasks,
        inbox_audit: config.retention.inbox_audit,
        push_configs: config.retention.push_configs,
    };
    let process = process_info(clock.now());
    Arc::new(Tick::new(TickDeps {
        engine,
        outbox: Some(Arc::new(PushOutbox(Arc::clone(&store)))),
        store,
        clock,
        // No channel of this build has to be asked.
        channels: Vec::new(),
        retention,
        process,
        interval: config.heartbeat.interval,
    }))
}

/// Ticks until the returned group stops. A tick that runs then is dropped; the next process goes on where it was. Ticks never
/// overlap: one that takes longer than the interval delays the next one.
pub(super) fn start(tick: Arc<Tick>, interval: Duration) -> TaskGroup {
    let group = TaskGroup::new();
    let stop = group.stop_token().clone();
    group.spawn(async move {
        let mut timer = interval_at(Instant::now() + FIRST_TICK.min(interval), interval);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticking = async {
            loop {
                timer.tick().await;
                if let Ok(report) = tick.run().await {
                    tracing::debug!(?report, completed = tick.completed(), "ticked");
                }
            }
        };
        stop.run_until_cancelled(ticking).await;
    });
    group
}

fn process_info(started_at: Timestamp) -> ProcessInfo {
    let host = BlockId::of(rustix::system::uname().nodename().to_bytes());
    ProcessInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        host: host.as_str().chars().take(HOST_DIGITS).collect(),
        started_at,
    }
}

/// Push notifications that are not delivered.
struct PushOutbox(Arc<dyn Store>);

impl Outbox for PushOutbox {
    fn behind(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(harness_a2a::receivers_behind(&*self.0))
    }
}
