//! Wakes workflows when their timers are due. The timers are in the store; in memory there is only the time to wake up.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use harness_journal::Host;
use harness_model::{Timestamp, WorkflowId};
use harness_ports::StoredTimer;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Timers read at a time.
const PAGE: usize = 64;
/// Timers read at a time when the first ones belong to workflows that are set aside.
const PAGE_MAX: usize = 65_536;
/// Longest sleep: also bounds how late a timer is when the clock was set.
const SLEEP_MAX: Duration = Duration::from_secs(60);
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Tells the service about timers that are due earlier than it expects.
#[derive(Debug)]
pub(crate) struct TimerAlarm {
    /// When the service looks again, in milliseconds; `i64::MAX` while it is looking.
    wakes_at: AtomicI64,
    earlier: Notify,
}

impl Default for TimerAlarm {
    fn default() -> Self {
        Self { wakes_at: AtomicI64::new(i64::MAX), earlier: Notify::new() }
    }
}

impl TimerAlarm {
    /// A timer that is due at this time has become durable.
    pub(crate) fn expect(&self, due_at: Timestamp) {
        if due_at.as_millis() < self.wakes_at.load(Ordering::SeqCst) {
            self.earlier.notify_one();
        }
    }
}

/// What a look at the timers showed.
enum Look {
    /// These workflows have timers that are due.
    Due(BTreeSet<WorkflowId>),
    /// Nothing is due before this.
    Until(Option<Timestamp>),
    /// Only timers that nobody can take; look further.
    Further,
}

/// Fires timers until the engine stops.
pub(crate) async fn run(host: Arc<Host>, alarm: Arc<TimerAlarm>, stop: CancellationToken) {
    let _stopped = stop.run_until_cancelled(serve(&host, &alarm)).await;
}

async fn serve(host: &Arc<Host>, alarm: &TimerAlarm) {
    let (mut page, mut retry) = (PAGE, RETRY_FIRST);
    loop {
        alarm.wakes_at.store(i64::MAX, Ordering::SeqCst);
        let timers = match host.store.next_timers(page).await {
            Ok(timers) => timers,
            Err(error) => {
                tracing::warn!(%error, "timers cannot be read");
                back_off(&mut retry).await;
                continue;
            }
        };
        match look(host, &timers, page) {
            Look::Due(workflows) if wake(host, &workflows).await => retry = RETRY_FIRST,
            // Nobody made progress; what failed has been logged by the actors.
            Look::Due(_) => back_off(&mut retry).await,
            Look::Further => page *= 2,
            Look::Until(due_at) => {
                page = PAGE;
                sleep_until(host, alarm, due_at).await;
            }
        }
    }
}

fn look(host: &Host, timers: &[StoredTimer], page: usize) -> Look {
    let now = host.clock.now();
    let takeable = timers.iter().filter(|timer| !host.is_set_aside(&timer.workflow_id));
    let mut due = BTreeSet::new();
    for timer in takeable {
        if timer.due_at > now {
            return if due.is_empty() { Look::Until(Some(timer.due_at)) } else { Look::Due(due) };
        }
        due.insert(timer.workflow_id.clone());
    }
    if !due.is_empty() {
        Look::Due(due)
    } else if timers.len() == page && page < PAGE_MAX {
        Look::Further
    } else {
        Look::Until(None)
    }
}

/// Lets the workflows take their timers. Says whether any of them did.
async fn wake(host: &Arc<Host>, workflows: &BTreeSet<WorkflowId>) -> bool {
    let answers = join_all(workflows.iter().map(|workflow_id| host.fire_timers(workflow_id))).await;
    answers.into_iter().any(|changed| changed.unwrap_or(false))
}

async fn sleep_until(host: &Host, alarm: &TimerAlarm, due_at: Option<Timestamp>) {
    let wait = due_at.map_or(SLEEP_MAX, |due_at| due_at.since(host.clock.now()).min(SLEEP_MAX));
    alarm.wakes_at.store(due_at.map_or(i64::MAX, Timestamp::as_millis), Ordering::SeqCst);
    let earlier = alarm.earlier.notified();
    tokio::select! {
        () = earlier => {}
        () = tokio::time::sleep(wait) => {}
    }
}

async fn back_off(retry: &mut Duration) {
    tokio::time::sleep(*retry).await;
    *retry = (*retry * 2).min(RETRY_MAX);
}
