//! Live log entries for those who follow: a bounded ring per followed task, and one wake-up for all its followers.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use harness_model::{LogEntry, TaskId};
use tokio::sync::watch;

/// Entries of one task that are kept in memory while somebody follows it. Who lags further reads the log.
const RING_CAPACITY: usize = 256;

/// The feeds of all followed tasks.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    feeds: Mutex<Feeds>,
}

#[derive(Debug, Default)]
struct Feeds {
    by_task: HashMap<TaskId, Followed>,
    closed: bool,
}

#[derive(Debug)]
struct Followed {
    feed: Arc<Feed>,
    followers: usize,
}

/// One followed task.
#[derive(Debug)]
struct Feed {
    ring: Mutex<VecDeque<Arc<LogEntry>>>,
    state: watch::Sender<FeedState>,
}

/// What wakes followers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedState {
    /// The log is known to hold every entry before this one, and every later entry will come through the feed. Zero
    /// until somebody looked.
    pub(crate) end: u64,
    /// The store closes: no entry comes any more.
    pub(crate) closed: bool,
    /// The task is deleted: no entry comes any more.
    pub(crate) deleted: bool,
}

/// A follower's share of a feed. The feed goes with its last follower.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    task_id: TaskId,
    feed: Arc<Feed>,
    state: watch::Receiver<FeedState>,
}

impl Hub {
    /// Follows a task from now on. What came before is in the log.
    pub(crate) fn subscribe(self: &Arc<Self>, task_id: &TaskId) -> Subscription {
        let mut feeds = lock(&self.feeds);
        let closed = feeds.closed;
        let followed = feeds.by_task.entry(task_id.clone()).or_insert_with(|| Followed {
            feed: Arc::new(Feed {
                ring: Mutex::default(),
                state: watch::Sender::new(FeedState { closed, ..FeedState::default() }),
            }),
            followers: 0,
        });
        followed.followers += 1;
        let feed = Arc::clone(&followed.feed);
        let state = feed.state.subscribe();
        Subscription { hub: Arc::clone(self), task_id: task_id.clone(), feed, state }
    }

    /// Hands durable entries, in the order of the log, to whoever follows their tasks.
    pub(crate) fn publish(&self, entries: &[(TaskId, Arc<LogEntry>)]) {
        for of_task in entries.chunk_by(|a, b| a.0 == b.0) {
            let feed =
                lock(&self.feeds).by_task.get(&of_task[0].0).map(|followed| Arc::clone(&followed.feed));
            if let Some(feed) = feed {
                feed.push(of_task);
            }
        }
    }

    /// Tells the followers of deleted tasks that nothing comes any more. Who follows a task of this id from now on
    /// follows the next one.
    pub(crate) fn end(&self, tasks: &[TaskId]) {
        let mut feeds = lock(&self.feeds);
        for task_id in tasks {
            if let Some(followed) = feeds.by_task.remove(task_id) {
                followed.feed.state.send_modify(|state| state.deleted = true);
            }
        }
    }

    /// Tells every follower, present and future, that nothing comes any more.
    pub(crate) fn close(&self) {
        let mut feeds = lock(&self.feeds);
        feeds.closed = true;
        for followed in feeds.by_task.values() {
            followed.feed.state.send_modify(|state| state.closed = true);
        }
    }
}

impl Feed {
    fn push(&self, entries: &[(TaskId, Arc<LogEntry>)]) {
        let mut ring = lock(&self.ring);
        for (_, entry) in entries {
            if ring.len() == RING_CAPACITY {
                ring.pop_front();
            }
            debug_assert!(ring.back().is_none_or(|last| last.seq + 1 == entry.seq), "the ring has no gaps");
            ring.push_back(Arc::clone(entry));
        }
        let end = ring.back().map_or(0, |last| last.seq + 1);
        drop(ring);
        self.advance(end);
    }

    fn advance(&self, end: u64) {
        self.state.send_if_modified(|state| {
            let newer = end > state.end;
            state.end = state.end.max(end);
            newer
        });
    }
}

impl Subscription {
    /// The state now; [`Subscription::changed`] waits for a later one.
    pub(crate) fn state(&mut self) -> FeedState {
        *self.state.borrow_and_update()
    }

    /// Waits until the state is another than the one seen last.
    pub(crate) async fn changed(&mut self) {
        // The sender lives in the feed that this subscription holds, so that it cannot be gone.
        drop(self.state.changed().await);
    }

    /// Entries from `next` on that are in memory, at most `limit`. Empty when the log must be read.
    pub(crate) fn entries(&self, next: u64, limit: usize) -> Vec<Arc<LogEntry>> {
        let ring = lock(&self.feed.ring);
        let start = ring.front().and_then(|first| next.checked_sub(first.seq));
        match start.and_then(|start| usize::try_from(start).ok()) {
            Some(start) => ring.iter().skip(start).take(limit).cloned().collect(),
            None => Vec::new(),
        }
    }

    /// Somebody who subscribed before has read the log up to here, and nothing came after it.
    pub(crate) fn log_ends_at(&self, end: u64) {
        self.feed.advance(end);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut feeds = lock(&self.hub.feeds);
        // A feed that has ended is no longer there, and another one may have its place.
        if let Some(followed) = feeds.by_task.get_mut(&self.task_id)
            && Arc::ptr_eq(&followed.feed, &self.feed)
        {
            followed.followers -= 1;
            if followed.followers == 0 {
                feeds.by_task.remove(&self.task_id);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves its data usable, so that a panic elsewhere is no reason to stop.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use harness_model::{TaskEvent, Timestamp};

    use super::*;

    fn entries(task: &str, seqs: std::ops::Range<u64>) -> Vec<(TaskId, Arc<LogEntry>)> {
        let entry = |seq| LogEntry { seq, at: Timestamp::from_millis(0), event: TaskEvent::TaskCreated };
        seqs.map(|seq| (task.into(), Arc::new(entry(seq)))).collect()
    }

    #[test]
    fn a_feed_lives_from_its_first_to_its_last_follower() {
        let hub = Arc::new(Hub::default());
        hub.publish(&entries("t", 0..5));
        let mut first = hub.subscribe(&"t".into());
        assert_eq!((first.state().end, first.entries(0, 9).len()), (0, 0), "nobody followed before");
        hub.publish(&entries("t", 5..7));
        let second = hub.subscribe(&"t".into());
        assert_eq!((first.state().end, second.entries(5, 9).len()), (7, 2));
        assert!(second.entries(4, 9).is_empty(), "what came before is in the log only");
        drop(first);
        assert_eq!(lock(&hub.feeds).by_task.len(), 1);
        drop(second);
        assert_eq!(lock(&hub.feeds).by_task.len(), 0);
    }

    #[test]
    fn an_ended_feed_makes_place_for_the_next_one() {
        let hub = Arc::new(Hub::default());
        let mut old = hub.subscribe(&"t".into());
        hub.publish(&entries("t", 0..3));
        hub.end(&["t".into(), "nobody".into()]);
        let mut new = hub.subscribe(&"t".into());
        hub.publish(&entries("t", 0..1));
        assert_eq!((old.state().deleted, old.state().end), (true, 3));
        assert_eq!((new.state().deleted, new.state().end), (false, 1));
        drop(old);
        assert_eq!(lock(&hub.feeds).by_task.len(), 1, "the new feed has a follower");
        drop(new);
        assert_eq!(lock(&hub.feeds).by_task.len(), 0);
    }

    #[test]
    fn memory_is_bounded_however_much_is_published() {
        let hub = Arc::new(Hub::default());
        let mut slow = hub.subscribe(&"t".into());
        for n in 0..100 {
            hub.publish(&entries("t", n * 10..n * 10 + 10));
        }
        assert_eq!(lock(&slow.feed.ring).len(), RING_CAPACITY);
        let oldest = 1_000 - RING_CAPACITY as u64;
        assert!(slow.entries(oldest - 1, 9).is_empty(), "a follower that lags reads the log");
        assert_eq!(slow.entries(oldest, 3)[2].seq, oldest + 2);
        assert_eq!((slow.state().end, slow.entries(1_000, 9).len()), (1_000, 0));
    }

    #[test]
    fn what_a_reader_saw_in_the_log_may_be_ahead_of_what_was_published() {
        let hub = Arc::new(Hub::default());
        let mut follower = hub.subscribe(&"t".into());
        follower.log_ends_at(3);
        assert_eq!((follower.state().end, follower.entries(2, 9).len()), (3, 0), "the log has it");
        hub.publish(&entries("t", 1..3));
        assert_eq!((follower.state().end, follower.entries(2, 9).len()), (3, 1));
        follower.log_ends_at(2);
        assert_eq!(follower.state().end, 3, "an old look changes nothing");
    }
}
