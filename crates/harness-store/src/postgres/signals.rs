//! Waking followers across processes: one connection listens, one tells, and a slow look is the net below both.
//!
//! A commit does not tell in its own transaction: the server lets only one telling transaction commit at a time, flush
//! included, which would end the sharing of flushes. What a process that dies has not told, others see at the next look.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use harness_model::{BlockId, TaskId};
use sqlx::{Row, postgres::PgListener};
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    connect::{Server, step},
    feeds::Feeds,
};
use crate::{
    block_cache::BlockCache,
    encode::{self, Address, to_u64},
};

/// Tasks that wait to be told about; more are left to the next look of the others.
const OUTBOX_MAX: usize = 10_000;
/// Tasks that are told about, or looked at, in one statement.
const CHUNK: usize = 500;
/// Time between two looks at how far the followed logs reach.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);
/// Wait before a broken connection is replaced.
const RECONNECT_WAIT: Duration = Duration::from_millis(250);
/// The server takes a little more.
const PAYLOAD_BYTES_MAX: usize = 7_000;

/// What others are to be told.
#[derive(Debug)]
pub(super) struct Outbox {
    news: Mutex<News>,
    filled: Notify,
    /// Tells what this process says from what others say.
    origin: String,
}

#[derive(Debug, Default)]
struct News {
    /// How far which logs reach, with the rows of their tasks.
    ends: HashMap<TaskId, (i64, u64)>,
    deleted: Vec<(TaskId, i64)>,
    removed: Vec<Address>,
}

/// Wakes followers.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    pub(super) server: Server,
    pub(super) feeds: Arc<Feeds>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) channel: String,
}

impl Outbox {
    /// An empty one; `origin` is a word of this process alone.
    pub(super) fn new(origin: String) -> Self {
        Self { news: Mutex::default(), filled: Notify::new(), origin }
    }

    /// Tells how far a log reaches, soon.
    pub(super) fn reaches(&self, task_id: &TaskId, life: i64, end: u64) {
        let mut news = self.lock();
        if let Some(known) = news.ends.get_mut(task_id) {
            *known = (life, end).max(*known);
        } else if news.ends.len() < OUTBOX_MAX {
            news.ends.insert(task_id.clone(), (life, end));
        }
        drop(news);
        self.filled.notify_one();
    }

    /// Tells that a task is deleted, soon.
    pub(super) fn deleted(&self, task_id: &TaskId, life: i64) {
        let mut news = self.lock();
        if news.deleted.len() < OUTBOX_MAX {
            news.deleted.push((task_id.clone(), life));
        }
        drop(news);
        self.filled.notify_one();
    }

    /// Tells that blocks are gone, soon. Their task is told about as well.
    pub(super) fn removed(&self, blocks: &[Address]) {
        let mut news = self.lock();
        // One too many says that there are more.
        let room = (OUTBOX_MAX + 1).saturating_sub(news.removed.len());
        news.removed.extend(blocks.iter().take(room));
    }

    fn take(&self) -> Vec<String> {
        let News { ends, deleted, removed } = std::mem::take(&mut *self.lock());
        let origin = &self.origin;
        let mut payloads: Vec<String> =
            deleted.into_iter().map(|(task_id, life)| format!("{origin} deleted {life} {task_id}")).collect();
        payloads.extend(
            ends.into_iter().map(|(task_id, (life, end))| format!("{origin} reaches {life} {end} {task_id}")),
        );
        if removed.len() > OUTBOX_MAX {
            payloads.push(format!("{origin} forget"));
        } else {
            let hex = |address: Address| address.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            payloads.extend(removed.into_iter().map(|address| format!("{origin} removed {}", hex(address))));
        }
        payloads.retain(|payload| payload.len() <= PAYLOAD_BYTES_MAX);
        payloads
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        // Every change leaves it usable, so that a panic elsewhere is no reason to stop.
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signals {
    /// Tells until it is stopped, and then what is left.
    pub(super) async fn tell(self, stop: CancellationToken) {
        while stop.run_until_cancelled(self.outbox.filled.notified()).await.is_some() {
            self.tell_now().await;
        }
        self.tell_now().await;
    }

    async fn tell_now(&self) {
        let payloads = self.outbox.take();
        for chunk in payloads.chunks(CHUNK) {
            let sql = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload";
            let told = sqlx::query(sql).bind(&self.channel).bind(chunk).execute(&self.server.signals);
            if let Err(error) = step(told).await {
                tracing::debug!(%error, "others are not told of new log entries; they will look");
            }
        }
    }

    /// Listens until it is stopped.
    pub(super) async fn listen(self, stop: CancellationToken) {
        while let Some(ended) = stop.run_until_cancelled(self.session()).await {
            if let Err(error) = ended {
                tracing::debug!(%error, "the connection that listens is made again");
            }
            if stop.run_until_cancelled(sleep(RECONNECT_WAIT)).await.is_none() {
                return;
            }
        }
    }

    /// One connection, until it breaks.
    async fn session(&self) -> sqlx::Result<()> {
        let mut listener = PgListener::connect_with(&self.server.signals).await?;
        listener.eager_reconnect(false);
        listener.listen(&self.channel).await?;
        // Whatever came before is told by nobody.
        self.cache.clear();
        self.look().await;
        while let Some(notification) = listener.try_recv().await? {
            if self.hear(notification.payload()).is_none() {
                tracing::debug!("somebody told something that this build does not understand");
            }
        }
        Ok(())
    }

    /// Acts on what another process tells. `None` when it is not understood.
    fn hear(&self, payload: &str) -> Option<()> {
        let (origin, news) = payload.split_once(' ')?;
        if origin == self.outbox.origin {
            return Some(());
        }
        match news.split_once(' ').unwrap_or((news, "")) {
            ("reaches", rest) => {
                let (life, rest) = rest.split_once(' ')?;
                let (end, task_id) = rest.split_once(' ')?;
                self.feeds.reaches(&TaskId::from(task_id), life.parse().ok()?, end.parse().ok()?);
            }
            ("deleted", rest) => {
                let (life, task_id) = rest.split_once(' ')?;
                self.feeds.end(&TaskId::from(task_id), life.parse().ok()?);
            }
            ("removed", address) => self.cache.remove(&encode::address(&BlockId::parse(address)?)),
            ("forget", _) => self.cache.clear(),
            _ => return None,
        }
        Some(())
    }

    /// Looks now and then, until it is stopped.
    pub(super) async fn watch(self, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(LOOK_INTERVAL)).await.is_some() {
            if stop.run_until_cancelled(self.look()).await.is_none() {
                return;
            }
        }
    }

    /// Looks how far the followed logs reach, and which tasks are gone.
    async fn look(&self) {
        for chunk in self.feeds.tasks().chunks(CHUNK) {
            let ids: Vec<&str> = chunk.iter().map(|(task_id, _)| task_id.as_str()).collect();
            let sql = "SELECT task_id, id, next_seq FROM tasks WHERE task_id = ANY($1)";
            let rows =
                self.server.rows("looking for new entries", || sqlx::query(sql).bind(ids.clone())).await;
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => {
                    tracing::debug!(%error, "followers wait while the server does not answer");
                    return;
                }
            };
            let mut there = HashSet::new();
            for row in rows {
                if let (Ok(id), Ok(life), Ok(end)) =
                    (row.try_get::<&str, _>(0), row.try_get(1), row.try_get(2))
                {
                    let task_id = TaskId::from(id);
                    self.feeds.reaches(&task_id, life, to_u64(end));
                    there.insert(task_id);
                }
            }
            for (task_id, life) in chunk {
                if let Some(life) = life
                    && !there.contains(task_id)
                {
                    self.feeds.is_gone(task_id, *life);
                }
            }
        }
    }
}
