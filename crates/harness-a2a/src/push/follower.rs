//! Follows one configuration's task and delivers its events in order, until the task has ended or the receiver is given
//! up.

use std::sync::Arc;

use a2a::StreamResponse;
use bytes::Bytes;
use futures::StreamExt;
use harness_model::{LogEntry, TaskEvent, TaskId};
use harness_ports::{RecordKind, StoreError, TaskFields, Write, WriteBatch};
use tracing::{debug, error, warn};

use super::{
    Kept, Push, RECORDS_MAX, STORE_PAUSE,
    delivery::{Undelivered, deliver},
    stored_config::{DeliveryState, Secrets},
};
use crate::{A2aError, ErrorKind, render::TaskIds, service::Inner};

/// Where following goes on.
enum Next {
    /// With the next entry.
    Entry,
    /// From the record, which has changed or could not be written.
    Record,
    /// Nowhere: there is nothing more to deliver.
    End,
}

/// What to send for an entry.
enum Outgoing {
    Event(Bytes),
    /// Nothing; the receiver does not need it.
    Nothing,
    /// The owner may not see the task.
    Revoked,
}

/// Follows to the end. Dropping the future at any point loses nothing.
pub(super) async fn follow(inner: &Arc<Inner>, task_id: &TaskId, id: &str) {
    let Some(push) = &inner.push else { return };
    loop {
        match read(inner, task_id, id).await {
            Ok(Some(kept)) => {
                if let Next::End = follow_record(inner, push, kept).await {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                warn!(config = id, %error, "a push notification configuration cannot be read");
                if matches!(error, StoreError::Corrupt { .. }) {
                    return;
                }
                tokio::time::sleep(STORE_PAUSE).await;
            }
        }
    }
}

async fn read(inner: &Inner, task_id: &TaskId, id: &str) -> Result<Option<Kept>, StoreError> {
    let records = inner.store.records(RecordKind::PushConfig, task_id, RECORDS_MAX).await?;
    let found = records.into_iter().find(|record| record.id == id);
    let kept = found.map(Kept::read).transpose()?;
    Ok(kept.filter(|kept| kept.config.state == DeliveryState::Active))
}

/// Delivers from the record's cursor on.
async fn follow_record(inner: &Arc<Inner>, push: &Push, mut kept: Kept) -> Next {
    let secrets = match kept.config.open(&push.key) {
        Ok(secrets) => secrets,
        Err(error) => return give_up(inner, &mut kept, error.to_string()).await,
    };
    let mut log = inner.store.follow(&kept.config.task_id, kept.config.delivered);
    while let Some(entry) = log.next().await {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return not_read(inner, &mut kept, error.into()).await,
        };
        match step(inner, push, &mut kept, &secrets, &entry).await {
            Next::Entry => {}
            ended @ (Next::Record | Next::End) => return ended,
        }
    }
    Next::Record
}

async fn step(inner: &Arc<Inner>, push: &Push, kept: &mut Kept, secrets: &Secrets, entry: &LogEntry) -> Next {
    let outgoing = match outgoing(inner, kept, entry).await {
        Ok(outgoing) => outgoing,
        Err(error) => return not_read(inner, kept, error).await,
    };
    match outgoing {
        Outgoing::Nothing => return Next::Entry,
        Outgoing::Revoked => {
            warn!(config = kept.record.id, "push notifications end: their owner left the task");
            kept.config.state = DeliveryState::Revoked;
            return keep(inner, kept).await;
        }
        Outgoing::Event(body) => {
            if let Err(failure) = deliver_with_retries(push, kept, secrets, (entry.seq, body)).await {
                return give_up(inner, kept, failure).await;
            }
        }
    }
    kept.config.delivered = Some(entry.seq);
    if ends_task(entry) {
        kept.config.state = DeliveryState::Done;
    }
    keep(inner, kept).await
}

/// The body for an entry: one stream event.
async fn outgoing(inner: &Inner, kept: &Kept, entry: &LogEntry) -> Result<Outgoing, A2aError> {
    if matches!(entry.event, TaskEvent::TaskCreated) {
        return Ok(Outgoing::Nothing);
    }
    let snapshot = inner.store.task(&kept.config.task_id, TaskFields::BARE).await?;
    let record = snapshot.ok_or_else(|| A2aError::internal("a logged task has no record"))?.record;
    if record.extension.participant(&kept.config.owner).is_none() {
        return Ok(Outgoing::Revoked);
    }
    let ids = TaskIds { task: &record.task_id, context: &record.context_id };
    let event: StreamResponse = match &entry.event {
        TaskEvent::TaskCreated => return Ok(Outgoing::Nothing),
        TaskEvent::StatusChanged(status) => inner.renderer.status_update(ids, entry, status).await?,
        TaskEvent::ArtifactChanged(change) => inner.renderer.artifact_update(ids, change).await?,
    };
    let body = serde_json::to_vec(&event).map_err(A2aError::internal)?;
    Ok(Outgoing::Event(body.into()))
}

/// Errors: what the last try failed with, when no further one is made.
async fn deliver_with_retries(
    push: &Push,
    kept: &Kept,
    secrets: &Secrets,
    (seq, body): (u64, Bytes),
) -> Result<(), String> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let place = push.places.acquire().await;
        let sent = deliver(&push.http, &push.guard, &kept.config, secrets, (seq, body.clone())).await;
        drop(place);
        let failure = match sent {
            Ok(()) => return Ok(()),
            Err(Undelivered::Never(failure)) => return Err(failure),
            Err(Undelivered::Retry(failure)) => failure,
        };
        if attempt >= push.retry.attempts_max {
            return Err(format!("{failure} ({attempt} tries)"));
        }
        let wait = push.retry.wait_after(attempt, &format!("{}/{seq}", kept.record.id));
        debug!(config = kept.record.id, seq, attempt, failure, ?wait, "push notification is sent again");
        tokio::time::sleep(wait).await;
    }
}

fn ends_task(entry: &LogEntry) -> bool {
    match &entry.event {
        TaskEvent::StatusChanged(status) => status.state.is_terminal(),
        TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => false,
    }
}

/// Gives the receiver up, where people look for it: in the log, and in the record.
async fn give_up(inner: &Inner, kept: &mut Kept, failure: String) -> Next {
    error!(
        config = kept.record.id,
        owner = %kept.config.owner,
        failure,
        "push notifications are given up; the receiver misses what follows until it registers again"
    );
    kept.config.state = DeliveryState::GivenUp;
    kept.config.failure = Some(failure);
    keep(inner, kept).await
}

/// Writes the configuration, unless somebody else has changed or removed it meanwhile.
async fn keep(inner: &Inner, kept: &mut Kept) -> Next {
    let value = kept.config.to_value();
    let write = Write::ReplaceRecord { before: kept.record.clone(), value: value.clone() };
    match inner.store.commit(WriteBatch::new(inner.clock.now(), vec![write])).await {
        Ok(_) => {
            kept.record.value = value;
            if kept.config.state == DeliveryState::Active { Next::Entry } else { Next::End }
        }
        Err(StoreError::Conflict { .. }) => Next::Record,
        Err(error) => store_failed(kept, &error.to_string()).await,
    }
}

/// An entry cannot be read: for now, which costs only time, or ever.
async fn not_read(inner: &Inner, kept: &mut Kept, error: A2aError) -> Next {
    let cause = error.cause_chain().unwrap_or_else(|| error.to_string());
    if error.kind == ErrorKind::Unavailable {
        return store_failed(kept, &cause).await;
    }
    give_up(inner, kept, format!("an event cannot be read: {cause}")).await
}

/// The log and the record are read again in a moment; nothing is lost meanwhile.
async fn store_failed(kept: &Kept, cause: &str) -> Next {
    warn!(config = kept.record.id, cause, "push notifications wait for the store");
    tokio::time::sleep(STORE_PAUSE).await;
    Next::Record
}
