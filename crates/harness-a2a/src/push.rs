//! Push notifications: an outbox over the event log.
//!
//! Each configuration is a record that says up to which log entry its receiver has heard everything. A follower reads the
//! log from there and delivers one entry after the other, so that nothing is lost when the process dies, and nothing
//! overtakes anything. What was delivered and not yet noted is delivered again.

mod backoff;
mod delivery;
mod follower;
mod stored_config;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use harness_model::{ParticipantId, TaskId};
use harness_ports::{Record, RecordKind, Store, StoreError, TaskFields, TaskGroup, Write, WriteBatch};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

pub use backoff::PushRetry;
pub(crate) use stored_config::{Origin, Sealing, StoredConfig};

use crate::{AddressGuard, PushKey, service::Inner};
use stored_config::DeliveryState;

/// Deliveries that are on their way at once, all configurations together.
const DELIVERIES_MAX: usize = 64;
/// Configurations that are followed at once; no further ones are taken.
const FOLLOWED_MAX: usize = 20_000;
/// Records that are read at once when the process starts.
const SCAN_PAGE: usize = 256;
/// Configurations of one task that are read; more than its participants can make.
const RECORDS_MAX: usize = 4_096;
/// Time to connect to a receiver.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Pause before the store is asked again after it failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// What a sender of push notifications needs.
#[derive(Clone, Debug)]
pub(crate) struct PushSettings {
    /// Seals tokens and credentials.
    pub(crate) key: PushKey,
    /// Which receivers may be called.
    pub(crate) guard: AddressGuard,
    /// When deliveries are repeated.
    pub(crate) retry: PushRetry,
}

/// No sender could be made.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The configuration has no push key.
    #[error("push notifications need a push key")]
    NoKey,
    /// The HTTP client cannot be built.
    #[error("the HTTP client for push notifications cannot be built")]
    Client(#[source] reqwest::Error),
}

/// The sender, and the place where configurations are kept.
pub(crate) struct Push {
    pub(crate) key: PushKey,
    pub(crate) guard: AddressGuard,
    retry: PushRetry,
    http: reqwest::Client,
    /// Places for deliveries.
    places: Semaphore,
    followed: Mutex<HashMap<String, CancellationToken>>,
    group: TaskGroup,
}

/// A configuration with the record it was read from.
pub(crate) struct Kept {
    pub(crate) record: Record,
    pub(crate) config: StoredConfig,
}

impl Push {
    pub(crate) fn new(settings: PushSettings, group: TaskGroup) -> Result<Self, PushError> {
        let http = settings.guard.client(CONNECT_TIME).build().map_err(PushError::Client)?;
        Ok(Self {
            key: settings.key,
            guard: settings.guard,
            retry: settings.retry,
            http,
            places: Semaphore::new(DELIVERIES_MAX),
            followed: Mutex::default(),
            group,
        })
    }

    /// Whether one more configuration can be followed.
    pub(crate) fn has_room(&self) -> bool {
        self.followed().len() < FOLLOWED_MAX
    }

    /// The configurations that a participant has made for a task, by id.
    pub(crate) async fn of_owner(
        &self,
        store: &dyn Store,
        task_id: &TaskId,
        owner: &ParticipantId,
    ) -> Result<Vec<Kept>, StoreError> {
        let records = store.records(RecordKind::PushConfig, task_id, RECORDS_MAX).await?;
        let kept = records.into_iter().map(Kept::read).collect::<Result<Vec<_>, _>>()?;
        let mut own: Vec<Kept> = kept.into_iter().filter(|kept| kept.config.owner == *owner).collect();
        own.sort_by(|a, b| a.config.config_id.cmp(&b.config.config_id));
        Ok(own)
    }

    /// Keeps a configuration, in place of one with the same id, and delivers what follows its cursor.
    pub(crate) async fn put(&self, inner: &Arc<Inner>, config: StoredConfig) -> Result<(), StoreError> {
        let record = config.to_record();
        let id = record.id.clone();
        let batch = WriteBatch::new(inner.clock.now(), vec![Write::PutRecord(record)]);
        inner.store.commit(batch).await?;
        self.follow(inner, config.task_id, id);
        Ok(())
    }

    /// Forgets a configuration; nothing is delivered to it any more.
    pub(crate) async fn delete(&self, inner: &Arc<Inner>, kept: Kept) -> Result<(), StoreError> {
        let Record { kind, id, .. } = kept.record;
        if let Some(token) = self.followed().remove(&id) {
            token.cancel();
        }
        let batch = WriteBatch::new(inner.clock.now(), vec![Write::DeleteRecord { kind, id }]);
        inner.store.commit(batch).await.map(drop)
    }

    /// Takes up what an earlier process has left undelivered.
    pub(crate) fn resume(&self, inner: &Arc<Inner>) {
        let (inner, stop) = (Arc::clone(inner), self.group.stop_token().clone());
        self.group.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = scan(&inner) => {}
            }
        });
    }

    /// Spawns the follower of a configuration, in place of the one it had.
    fn follow(&self, inner: &Arc<Inner>, task_id: TaskId, id: String) {
        let token = self.group.stop_token().child_token();
        if let Some(before) = self.followed().insert(id.clone(), token.clone()) {
            before.cancel();
        }
        let inner = Arc::clone(inner);
        self.group.spawn(async move {
            let following = follower::follow(&inner, &task_id, &id);
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = following => {
                    let Some(push) = &inner.push else { return };
                    let mut followed = push.followed();
                    // A configuration that was replaced meanwhile has another follower.
                    if !token.is_cancelled() {
                        followed.remove(&id);
                    }
                }
            }
        });
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn read(record: Record) -> Result<Self, StoreError> {
        let config = StoredConfig::of_record(&record)?;
        Ok(Self { record, config })
    }
}

/// How many receivers have not heard everything that happened. Reads a bounded number of configurations; with more than
/// those the number is a lower bound.
pub async fn receivers_behind(store: &dyn Store) -> Result<u64, StoreError> {
    let mut after: Option<String> = None;
    let mut behind = 0;
    for _ in 0..FOLLOWED_MAX / SCAN_PAGE {
        let page = store.records_page(RecordKind::PushConfig, after.as_deref(), SCAN_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for record in &page {
            let Ok(config) = StoredConfig::of_record(record) else { continue };
            if config.state != DeliveryState::Active {
                continue;
            }
            let task = store.task(&record.task_id, TaskFields::BARE).await?;
            // The creation of a task is not told.
            let told = config.delivered.unwrap_or(0);
            behind += u64::from(task.is_some_and(|task| task.last_seq > told));
        }
    }
    Ok(behind)
}

/// Follows every configuration that is not done.
async fn scan(inner: &Arc<Inner>) {
    let Some(push) = &inner.push else { return };
    let mut after: Option<String> = None;
    let mut count = 0_usize;
    loop {
        let page = inner.store.records_page(RecordKind::PushConfig, after.as_deref(), SCAN_PAGE).await;
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                warn!(%error, "cannot read the push notification configurations yet");
                tokio::time::sleep(STORE_PAUSE).await;
                continue;
            }
        };
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for record in page {
            match StoredConfig::of_record(&record) {
                Ok(config) if config.state == DeliveryState::Active => {
                    let known = push.followed().contains_key(&record.id);
                    if !known {
                        count += 1;
                        push.follow(inner, record.task_id, record.id);
                    }
                }
                Ok(_) => {}
                Err(error) => error!(%error, "a push notification configuration is not used"),
            }
        }
    }
    if count > 0 {
        info!(count, "following tasks for push notifications");
    }
}
