//! Following a task's log: the past from the log, the present from memory, without a gap or a repetition between.

use std::{collections::VecDeque, sync::Arc};

use futures::{StreamExt, stream};
use harness_model::{LogEntry, TaskId};
use harness_ports::{LogStream, StoreError};

use crate::{
    error,
    hub::{Hub, Subscription},
    read,
    readers::Readers,
};

/// Entries a follower takes at once, from memory or from the log.
const PAGE: usize = 128;

/// One follower.
struct Follower {
    subscription: Subscription,
    readers: Arc<Readers>,
    task_id: TaskId,
    /// The entry to yield after the page.
    next: u64,
    page: VecDeque<Arc<LogEntry>>,
    /// Whether this follower, or another one for it, has seen the end of the log since the feed began: from then on
    /// every entry comes through the feed.
    attached: bool,
}

/// What filling the page came to.
enum Fill {
    /// There may be entries now.
    Again,
    /// There will be none.
    Ended,
}

/// Entries after `after`, then the ones to come.
pub(crate) fn follow(
    hub: &Arc<Hub>,
    readers: &Arc<Readers>,
    task_id: &TaskId,
    after: Option<u64>,
) -> LogStream {
    let follower = Follower {
        subscription: hub.subscribe(task_id),
        readers: Arc::clone(readers),
        task_id: task_id.clone(),
        next: after.map_or(0, |after| after.saturating_add(1)),
        page: VecDeque::new(),
        attached: false,
    };
    stream::unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        match follower.next_entry().await {
            Ok(Some(entry)) => Some((Ok(entry), Some(follower))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

impl Follower {
    /// `None` when the task is deleted.
    async fn next_entry(&mut self) -> Result<Option<Arc<LogEntry>>, StoreError> {
        loop {
            if let Some(entry) = self.page.pop_front() {
                debug_assert!(entry.seq >= self.next, "no entry is yielded twice");
                self.next = entry.seq + 1;
                return Ok(Some(entry));
            }
            if let Fill::Ended = self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Fills the page, or waits until there may be something to fill it with.
    async fn fill(&mut self) -> Result<Fill, StoreError> {
        // Seen before looking for entries: what comes after this look ends the wait below.
        let state = self.subscription.state();
        if state.deleted {
            // The log is gone, or already that of the next task of this id.
            self.page.extend(self.subscription.entries(self.next, PAGE));
            return Ok(if self.page.is_empty() { Fill::Ended } else { Fill::Again });
        }
        self.attached |= state.end > 0;
        if state.end > self.next || !self.attached {
            self.page.extend(self.subscription.entries(self.next, PAGE));
            if self.page.is_empty() {
                self.read_log().await?;
            }
            return Ok(Fill::Again);
        }
        if state.closed {
            return Err(error::closed());
        }
        self.subscription.changed().await;
        Ok(Fill::Again)
    }

    /// Reads a page of the log. Its end, once reached, is known to every follower.
    async fn read_log(&mut self) -> Result<(), StoreError> {
        let (task_id, next) = (self.task_id.clone(), self.next);
        let page =
            self.readers.read_few(move |connection| read::log_page(connection, &task_id, next, PAGE)).await?;
        if page.entries.len() < PAGE {
            self.attached = true;
            self.subscription.log_ends_at(page.end);
        }
        self.page.extend(page.entries.into_iter().map(Arc::new));
        Ok(())
    }
}
