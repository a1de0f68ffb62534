//! Followed tasks: how far each log is known to reach, and its newest entries in memory.
//!
//! Commits of this process bring their entries along, not always in the order of the log; commits of other processes
//! only say how far a log reaches now. So a ring holds a run of entries without gaps, whichever is newest, and who needs
//! another one reads the log, one reader per task at a time, and leaves what it found for the others.
//!
//! A feed is about one life of its task: the number of its row. Whatever is learned of a later one ends it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use harness_model::{LogEntry, TaskId};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

/// Entries of one task that are kept in memory while somebody follows it. Who lags further reads the log.
const RING_CAPACITY: usize = 256;

/// The feeds of all followed tasks.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    feeds: Mutex<Followed>,
}

#[derive(Debug, Default)]
struct Followed {
    by_task: HashMap<TaskId, (Arc<Feed>, usize)>,
    closed: bool,
}

/// One followed task.
#[derive(Debug)]
struct Feed {
    /// The row of the task, once it is known.
    life: OnceLock<i64>,
    ring: Mutex<VecDeque<Arc<LogEntry>>>,
    state: watch::Sender<FeedState>,
    /// The place of the one who reads the log.
    reading: Semaphore,
}

/// What wakes followers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FeedState {
    /// The log is known to hold every entry before this one.
    pub(super) end: u64,
    /// The task is deleted; what is in memory is the rest.
    pub(super) deleted: bool,
    /// No entry comes any more: the store is closed.
    pub(super) closed: bool,
}

/// A follower's share of a feed. The feed goes with its last follower.
#[derive(Debug)]
pub(super) struct Subscription {
    feeds: Arc<Feeds>,
    task_id: TaskId,
    feed: Arc<Feed>,
    state: watch::Receiver<FeedState>,
}

/// What a reader of the log needs of a feed.
#[derive(Clone, Debug)]
pub(super) struct FeedHandle(Arc<Feed>);

impl Feeds {
    /// Follows a task from now on. What came before is in the log.
    pub(super) fn subscribe(self: &Arc<Self>, task_id: &TaskId) -> Subscription {
        let mut followed = self.lock();
        let closed = followed.closed;
        let (feed, followers) =
            followed.by_task.entry(task_id.clone()).or_insert_with(|| (Arc::new(Feed::new(closed)), 0));
        *followers += 1;
        let feed = Arc::clone(feed);
        let state = feed.state.subscribe();
        Subscription { feeds: Arc::clone(self), task_id: task_id.clone(), feed, state }
    }

    /// Hands durable entries of one life of a task to whoever follows it.
    pub(super) fn publish<'a>(
        &self,
        task_id: &TaskId,
        life: i64,
        entries: impl Iterator<Item = &'a Arc<LogEntry>>,
    ) {
        if let Some(feed) = self.living(task_id, life) {
            feed.push(entries);
        }
    }

    /// The log of a task reaches at least this far now.
    pub(super) fn reaches(&self, task_id: &TaskId, life: i64, end: u64) {
        if let Some(feed) = self.living(task_id, life) {
            feed.advance(end);
        }
    }

    /// A life of a task is over, and so are the streams of those who follow it, or who wait for a task since before.
    pub(super) fn end(&self, task_id: &TaskId, life: i64) {
        self.end_if(task_id, |known| known.is_none_or(|known| known <= life));
    }

    /// A look found no such life any more.
    pub(super) fn is_gone(&self, task_id: &TaskId, life: i64) {
        self.end_if(task_id, |known| known == Some(life));
    }

    /// Every followed task, with its life as far as it is known.
    pub(super) fn tasks(&self) -> Vec<(TaskId, Option<i64>)> {
        let followed = self.lock();
        followed
            .by_task
            .iter()
            .map(|(task_id, (feed, _))| (task_id.clone(), feed.life.get().copied()))
            .collect()
    }

    /// Tells every follower, present and future, that nothing comes any more.
    pub(super) fn close(&self) {
        let mut followed = self.lock();
        followed.closed = true;
        for (feed, _) in followed.by_task.values() {
            feed.state.send_modify(|state| state.closed = true);
        }
    }

    /// The feed of a life. That of an earlier one ends; of a later one there is nothing to say.
    fn living(&self, task_id: &TaskId, life: i64) -> Option<Arc<Feed>> {
        let feed = self.lock().by_task.get(task_id).map(|(feed, _)| Arc::clone(feed))?;
        let known = *feed.life.get_or_init(|| life);
        if known < life {
            self.end_if(task_id, |known| known.is_some_and(|known| known < life));
        }
        (known == life).then_some(feed)
    }

    fn end_if(&self, task_id: &TaskId, is_over: impl Fn(Option<i64>) -> bool) {
        let mut followed = self.lock();
        let over = followed.by_task.get(task_id).is_some_and(|(feed, _)| is_over(feed.life.get().copied()));
        if over && let Some((feed, _)) = followed.by_task.remove(task_id) {
            feed.state.send_modify(|state| state.deleted = true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        lock(&self.feeds)
    }
}

impl Feed {
    fn new(closed: bool) -> Self {
        Self {
            life: OnceLock::new(),
            ring: Mutex::default(),
            state: watch::Sender::new(FeedState { closed, ..FeedState::default() }),
            reading: Semaphore::new(1),
        }
    }

    /// Adds entries to the run in memory if they continue it; entries beyond a gap begin a new run.
    fn push<'a>(&self, entries: impl Iterator<Item = &'a Arc<LogEntry>>) {
        let mut ring = lock(&self.ring);
        for entry in entries {
            let next = ring.back().map_or(entry.seq, |last| last.seq + 1);
            if entry.seq < next {
                continue;
            }
            if entry.seq > next {
                ring.clear();
            }
            if ring.len() == RING_CAPACITY {
                ring.pop_front();
            }
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
    pub(super) fn state(&mut self) -> FeedState {
        *self.state.borrow_and_update()
    }

    /// Waits until the state is another than the one seen last.
    pub(super) async fn changed(&mut self) {
        // The sender lives in the feed that this subscription holds, so that it cannot be gone.
        drop(self.state.changed().await);
    }

    /// The feed, for whoever reads the log.
    pub(super) fn feed(&self) -> FeedHandle {
        FeedHandle(Arc::clone(&self.feed))
    }

    /// A look at the log found this life.
    pub(super) fn found(&self, life: i64) {
        drop(self.feeds.living(&self.task_id, life));
    }

    /// A look at the log found no task, where this life was known before.
    pub(super) fn lost(&self, life: i64) {
        self.feeds.is_gone(&self.task_id, life);
    }
}

impl FeedHandle {
    /// The life that is followed, once it is known.
    pub(super) fn life(&self) -> Option<i64> {
        self.0.life.get().copied()
    }

    /// Entries from `next` on that are in memory, at most `limit`. Empty when the log must be read.
    pub(super) fn entries(&self, next: u64, limit: usize) -> Vec<Arc<LogEntry>> {
        let ring = lock(&self.0.ring);
        let start = ring.front().and_then(|first| next.checked_sub(first.seq));
        match start.and_then(|start| usize::try_from(start).ok()) {
            Some(start) => ring.iter().skip(start).take(limit).cloned().collect(),
            None => Vec::new(),
        }
    }

    /// Waits for the turn to read the log, which lasts as long as what is returned.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Never closed, so that there always is a turn.
        self.0.reading.acquire().await.ok()
    }

    /// Leaves what was read for the others, if it is of the life that they follow; returns whether it is.
    pub(super) fn share(&self, life: i64, entries: &[Arc<LogEntry>]) -> bool {
        let same = *self.0.life.get_or_init(|| life) == life;
        if same {
            self.0.push(entries.iter());
        }
        same
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut followed = self.feeds.lock();
        if let Some((feed, followers)) = followed.by_task.get_mut(&self.task_id)
            && Arc::ptr_eq(feed, &self.feed)
        {
            *followers -= 1;
            if *followers == 0 {
                followed.by_task.remove(&self.task_id);
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

    fn entries(seqs: std::ops::Range<u64>) -> Vec<Arc<LogEntry>> {
        let entry = |seq| LogEntry { seq, at: Timestamp::from_millis(0), event: TaskEvent::TaskCreated };
        seqs.map(|seq| Arc::new(entry(seq))).collect()
    }

    fn publish(feeds: &Feeds, life: i64, seqs: std::ops::Range<u64>) {
        feeds.publish(&"t".into(), life, entries(seqs).iter());
    }

    fn seqs(entries: &[Arc<LogEntry>]) -> Vec<u64> {
        entries.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn a_ring_is_a_run_without_gaps_whatever_comes_in_which_order() {
        let feeds = Arc::new(Feeds::default());
        let mut follower = feeds.subscribe(&"t".into());
        let feed = follower.feed();
        publish(&feeds, 1, 5..7);
        publish(&feeds, 1, 4..5);
        assert_eq!(seqs(&feed.entries(5, 9)), [5, 6], "what was late is in the log only");
        assert!(feed.entries(4, 9).is_empty());
        publish(&feeds, 1, 6..8);
        assert_eq!(seqs(&feed.entries(5, 9)), [5, 6, 7], "nothing is there twice");
        publish(&feeds, 1, 9..11);
        assert!(feed.entries(7, 9).is_empty(), "a gap begins a new run");
        assert_eq!((seqs(&feed.entries(9, 1)), follower.state().end), (vec![9], 11));
        feeds.reaches(&"t".into(), 1, 20);
        feeds.reaches(&"t".into(), 1, 3);
        assert_eq!((follower.state().end, feed.entries(11, 9).len()), (20, 0), "the log has it");
    }

    #[test]
    fn what_an_old_reader_finds_does_not_take_the_place_of_what_is_new() {
        let feeds = Arc::new(Feeds::default());
        let feed = feeds.subscribe(&"t".into()).feed();
        let _follower = feeds.subscribe(&"t".into());
        assert!(feed.share(1, &entries(100..110)));
        assert!(feed.share(1, &entries(0..50)));
        assert_eq!(seqs(&feed.entries(108, 9)), [108, 109]);
        assert!(!feed.share(2, &entries(110..111)), "what is of another life is not mixed in");
        assert!(feed.entries(110, 9).is_empty());
    }

    #[test]
    fn memory_is_bounded_and_goes_with_the_last_follower() {
        let feeds = Arc::new(Feeds::default());
        let follower = feeds.subscribe(&"t".into());
        let other = feeds.subscribe(&"t".into());
        publish(&feeds, 7, 0..1_000);
        assert_eq!(lock(&follower.feed.ring).len(), RING_CAPACITY);
        drop(follower);
        assert_eq!(feeds.tasks(), [("t".into(), Some(7))]);
        drop(other);
        assert!(feeds.tasks().is_empty());
    }

    #[test]
    fn a_feed_ends_with_the_life_that_it_is_about() {
        let feeds = Arc::new(Feeds::default());
        let task = TaskId::from("t");
        let mut first = feeds.subscribe(&task);
        publish(&feeds, 7, 0..2);
        feeds.end(&task, 6);
        publish(&feeds, 6, 2..3);
        assert_eq!((first.state().deleted, first.state().end), (false, 2), "an earlier life says nothing");
        publish(&feeds, 8, 0..1);
        assert!(first.state().deleted, "a later life is the end of the one before");
        assert_eq!(seqs(&first.feed().entries(1, 9)), [1], "with its own entries still there");
        let mut second = feeds.subscribe(&task);
        drop(first);
        publish(&feeds, 8, 0..1);
        feeds.is_gone(&task, 7);
        assert_eq!((second.state().deleted, second.state().end), (false, 1));
        feeds.end(&task, 8);
        assert!(second.state().deleted);
        let mut waiting = feeds.subscribe(&task);
        feeds.is_gone(&task, 8);
        assert!(!waiting.state().deleted, "a look that is older than the follower");
        feeds.end(&task, 9);
        assert!(waiting.state().deleted, "it may have waited for the life that is over");
    }
}
