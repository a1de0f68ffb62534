//! Ownership of spawned futures: whoever spawns waits, for a bounded time.

use std::{future::Future, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A group of spawned futures that stop together. Clones share the group.
#[derive(Clone, Debug, Default)]
pub struct TaskGroup {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl TaskGroup {
    /// An empty group with its own stop token.
    pub fn new() -> Self {
        Self::default()
    }

    /// A group that stops when this one does, and can be stopped and awaited on its own.
    pub fn child(&self) -> Self {
        Self { tracker: TaskTracker::new(), stop: self.stop.child_token() }
    }

    /// The token that asks the members to stop. Members select on it first.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Spawns a future that this group waits for. Must be called inside a Tokio runtime.
    pub fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(self.tracker.spawn(future));
    }

    /// How many members are running.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether no member is running.
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Asks every member to stop and waits at most `grace`. Returns whether all of them ended in time.
    pub async fn shutdown(&self, grace: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        futures::future::select(std::pin::pin!(self.tracker.wait()), std::pin::pin!(sleep(grace))).await;
        self.tracker.is_empty()
    }
}

/// A timer that works inside the caller's runtime.
async fn sleep(duration: Duration) {
    // `CancellationToken::run_until_cancelled` has no time-out of its own; a tracker wait needs one.
    tokio_util::time::FutureExt::timeout(std::future::pending::<()>(), duration).await.unwrap_or(());
}
