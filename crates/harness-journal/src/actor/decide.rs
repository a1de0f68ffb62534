//! What becomes of the inputs: reads what the decision needs, applies events, and collects the batch.

use std::{collections::VecDeque, sync::Arc};

use harness_model::{ActivityId, TaskId};
use harness_ports::{Admission, Delivered, Delivery, EngineError, Signal, StoreError, TaskFields};

use crate::{
    Host,
    activity_run::outcome_unknown,
    batch::{Batch, Receipt},
    host::claim_key,
    input::Input,
    instance::{Instance, Standing, Unfit},
};

/// Decides the inputs from the first on. Stops early where the next decision needs this batch to be durable, or where
/// the workflow cannot go on; covers at least one input.
pub(super) async fn decide(
    host: &Arc<Host>,
    instance: &mut Instance,
    inputs: &VecDeque<Input>,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    for input in inputs {
        let receipt = match input {
            // The cursor of the receipt is the newest log entry, which has no number yet.
            Input::Deliver(_) if batch.publishes => break,
            Input::Deliver(pending) => {
                let writes = batch.writes.len();
                let receipt = deliver(host, instance, &pending.delivery, batch).await?;
                batch.unasked |= batch.writes.len() > writes;
                batch.from_memory |= batch.writes.len() == writes;
                receipt
            }
            Input::ActivityEnded { activity_id, outcome, .. } => {
                batch.from_memory |= !instance.announces(activity_id);
                silent(instance.activity_ended(activity_id, outcome, batch), batch)
            }
            Input::ActivityLost { activity_id, .. } => lost(host, instance, activity_id, batch).await?,
            Input::SignalArrived { activity_id, .. } => {
                batch.from_memory |= !instance.announces(activity_id);
                instance.forget_activity(activity_id, batch);
                Receipt::Silent
            }
            Input::TimersDue(_) => fire_timers(host, instance, batch).await?,
            Input::Recover(_) => Receipt::Silent,
        };
        batch.receipts.push(receipt);
        if batch.unfit.is_some() {
            break;
        }
    }
    Ok(())
}

fn silent(result: Result<(), Unfit>, batch: &mut Batch) -> Receipt {
    batch.unfit = result.err();
    Receipt::Silent
}

/// Records that nobody knows the outcome of an activity that must not be repeated and was begun. Any other stays
/// announced.
async fn lost(
    host: &Arc<Host>,
    instance: &mut Instance,
    activity_id: &ActivityId,
    batch: &mut Batch,
) -> Result<Receipt, StoreError> {
    batch.from_memory |= !instance.announces(activity_id);
    let Some(name) = instance.runs_once(activity_id) else { return Ok(Receipt::Silent) };
    if host.store.delivery(instance.workflow_id(), &claim_key(activity_id)).await?.is_none() {
        return Ok(Receipt::Silent);
    }
    let outcome = Err(outcome_unknown(&name));
    Ok(silent(instance.activity_ended(activity_id, &outcome, batch), batch))
}

async fn deliver(
    host: &Arc<Host>,
    instance: &mut Instance,
    delivery: &Delivery,
    batch: &mut Batch,
) -> Result<Receipt, StoreError> {
    let standing = instance.standing();
    if standing != Standing::Absent
        && let Some(cursor) = accepted_before(host, delivery, batch).await?
    {
        return Ok(Receipt::Delivered(Delivered::Duplicate { cursor }));
    }
    match standing {
        Standing::Closed => Ok(Receipt::Delivered(Delivered::Closed)),
        Standing::Absent => Ok(start(host, instance, delivery, batch)),
        Standing::Open => match &delivery.signal {
            None => Ok(Receipt::Delivered(Delivered::Duplicate { cursor: None })),
            Some(signal) => {
                let cursor = match instance.cursor() {
                    Some(cursor) => cursor,
                    None => newest_entry(host, &TaskId::from(&delivery.workflow_id)).await?,
                };
                Ok(admit(instance, delivery, signal, cursor, batch))
            }
        },
    }
}

/// The cursor of the first delivery with this key, if there was one.
async fn accepted_before(
    host: &Arc<Host>,
    delivery: &Delivery,
    batch: &Batch,
) -> Result<Option<Option<u64>>, StoreError> {
    let Some(key) = delivery.signal.as_ref().and_then(|signal| signal.dedupe_key.as_deref()) else {
        return Ok(None);
    };
    match batch.delivered.get(key) {
        Some(cursor) => Ok(Some(*cursor)),
        None => host.store.delivery(&delivery.workflow_id, key).await,
    }
}

async fn newest_entry(host: &Arc<Host>, task_id: &TaskId) -> Result<Option<u64>, StoreError> {
    let task = host.store.task(task_id, TaskFields::BARE).await?;
    Ok(task.map(|task| task.last_seq))
}

/// Begins a workflow, with its first signal if there is one.
fn start(host: &Arc<Host>, instance: &mut Instance, delivery: &Delivery, batch: &mut Batch) -> Receipt {
    let Some(start) = &delivery.start else { return Receipt::Delivered(Delivered::NotFound) };
    let Some(definition) = host.definitions.get(start.workflow_type.as_str()) else {
        return Receipt::Failed(EngineError::UnknownType(start.workflow_type.clone()));
    };
    let position = batch.writes.len();
    batch.put_blocks(delivery);
    match instance.start(definition, start, delivery.signal.as_ref(), batch) {
        Ok(Admission::Accept) => {}
        Ok(refusal @ (Admission::Closed | Admission::Refuse(_))) => {
            batch.take_back(position);
            return refused(refusal);
        }
        // The input is at fault: the workflow does not come to be, and another start may do better.
        Err(reason) => {
            batch.take_back(position);
            let workflow_id = delivery.workflow_id.clone();
            return Receipt::Failed(EngineError::SetAside { workflow_id, reason });
        }
    }
    match &delivery.signal {
        Some(signal) => record(instance, delivery, signal, None, batch),
        None => Receipt::Delivered(Delivered::Accepted { cursor: None }),
    }
}

fn admit(
    instance: &mut Instance,
    delivery: &Delivery,
    signal: &Signal,
    cursor: Option<u64>,
    batch: &mut Batch,
) -> Receipt {
    match instance.admits(signal) {
        Ok(Admission::Accept) => {
            batch.put_blocks(delivery);
            record(instance, delivery, signal, cursor, batch)
        }
        Ok(refusal @ (Admission::Closed | Admission::Refuse(_))) => refused(refusal),
        Err(reason) => unfit(delivery, reason, batch),
    }
}

fn record(
    instance: &mut Instance,
    delivery: &Delivery,
    signal: &Signal,
    cursor: Option<u64>,
    batch: &mut Batch,
) -> Receipt {
    match instance.signal(signal, cursor, batch) {
        Ok(()) => Receipt::Delivered(Delivered::Accepted { cursor }),
        Err(reason) => unfit(delivery, reason, batch),
    }
}

fn refused(admission: Admission) -> Receipt {
    Receipt::Delivered(match admission {
        Admission::Refuse(reason) => Delivered::Refused { reason },
        Admission::Accept | Admission::Closed => Delivered::Closed,
    })
}

fn unfit(delivery: &Delivery, reason: Unfit, batch: &mut Batch) -> Receipt {
    batch.unfit = Some(reason.clone());
    Receipt::Failed(EngineError::SetAside { workflow_id: delivery.workflow_id.clone(), reason })
}

/// Fires the timers that are due, in the order they are due. The store knows which ones there are; only about those that
/// this batch has touched it is out of date, and they come up again if they are still due.
async fn fire_timers(
    host: &Arc<Host>,
    instance: &mut Instance,
    batch: &mut Batch,
) -> Result<Receipt, StoreError> {
    let workflow_id = instance.workflow_id().clone();
    let mut changed = false;
    for timer in host.store.timers(&workflow_id).await? {
        if timer.due_at > batch.at {
            break;
        }
        if batch.touched_timers.contains(&timer.timer_id) {
            continue;
        }
        if let Err(reason) = instance.timer_fired(&timer.timer_id, batch) {
            batch.unfit = Some(reason);
            break;
        }
        changed = true;
    }
    Ok(Receipt::Timers { changed })
}
