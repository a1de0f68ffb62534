//! Following a task's log: the past from the log, the present from memory, without a gap or a repetition between.

use std::{collections::VecDeque, sync::Arc};

use futures::{StreamExt, stream};
use harness_model::{LogEntry, TaskId};
use harness_ports::{LogStream, StoreError};

use super::{
    connect::Server,
    feeds::{Feeds, Subscription},
    read,
};
use crate::error;

/// Entries a follower takes at once, from memory or from the log.
const PAGE: usize = 128;

/// One follower.
struct Follower {
    subscription: Subscription,
    server: Server,
    task_id: TaskId,
    /// The entry to yield after the page.
    next: u64,
    page: VecDeque<Arc<LogEntry>>,
    /// Whether the log was read to its end since the feed began: from then on the feed says when there is more.
    caught_up: bool,
}

/// Entries after `after`, then the ones to come.
pub(super) fn follow(feeds: &Arc<Feeds>, server: &Server, task_id: &TaskId, after: Option<u64>) -> LogStream {
    let follower = Follower {
        subscription: feeds.subscribe(task_id),
        server: server.clone(),
        task_id: task_id.clone(),
        next: after.map_or(0, |after| after.saturating_add(1)),
        page: VecDeque::new(),
        caught_up: false,
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
            if self.fill().await? == Fill::Ended {
                return Ok(None);
            }
        }
    }

    /// Fills the page, or waits until there may be something to fill it with.
    async fn fill(&mut self) -> Result<Fill, StoreError> {
        // Seen before looking for entries: what comes after this look ends the wait below.
        let state = self.subscription.state();
        if state.deleted || state.end > self.next || !self.caught_up {
            self.page.extend(self.subscription.feed().entries(self.next, PAGE));
            if self.page.is_empty() && state.deleted {
                // The log is gone, or already that of the next task of this id.
                return Ok(Fill::Ended);
            }
            if self.page.is_empty() && !state.closed {
                self.read_log().await?;
            }
            if !self.page.is_empty() {
                return Ok(Fill::Again);
            }
        }
        if state.closed {
            return Err(error::closed());
        }
        self.subscription.changed().await;
        Ok(Fill::Again)
    }

    /// Reads a page of the log, unless another follower has brought it into memory by then.
    async fn read_log(&mut self) -> Result<(), StoreError> {
        let (feed, server) = (self.subscription.feed(), self.server.clone());
        let (task_id, next) = (self.task_id.clone(), self.next);
        let look = async move {
            let _turn = feed.turn().await;
            let known = feed.entries(next, PAGE);
            if !known.is_empty() {
                return Ok(Look { entries: known, reached: Reached::Unknown, found: Found::Nothing });
            }
            let before = feed.life();
            let page = read::log_page(&server, &task_id, next, PAGE).await?;
            let entries: Vec<_> = page.entries.into_iter().map(Arc::new).collect();
            let reached = if entries.len() < PAGE { Reached::End } else { Reached::Unknown };
            // Entries of another life are not for those who follow this one.
            let same = page.life.is_some_and(|life| feed.share(life, &entries));
            let entries = if same { entries } else { Vec::new() };
            let found = match (page.life, before) {
                (Some(life), _) => Found::Life(life),
                (None, Some(life)) => Found::NoMore(life),
                (None, None) => Found::Nothing,
            };
            Ok(Look { entries, reached, found })
        };
        let look = self.server.carried(look).await?;
        match look.found {
            Found::Life(life) => self.subscription.found(life),
            Found::NoMore(life) => self.subscription.lost(life),
            Found::Nothing => {}
        }
        self.caught_up |= look.reached == Reached::End;
        self.page.extend(look.entries);
        Ok(())
    }
}

/// What filling a page came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Again,
    Ended,
}

/// What a look for entries found.
struct Look {
    entries: Vec<Arc<LogEntry>>,
    reached: Reached,
    found: Found,
}

/// How far a look at the log went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    End,
    Unknown,
}

/// What a look found out about the task.
enum Found {
    /// It has this life.
    Life(i64),
    /// The life that was known before the look is over.
    NoMore(i64),
    Nothing,
}
