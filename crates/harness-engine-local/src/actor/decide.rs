//! What becomes of the inputs: reads what the decision needs, applies events, and collects the batch.

use std::{collections::VecDeque, sync::Arc};

use harness_model::TaskId;
use harness_ports::{Admission, Delivered, Delivery, EngineError, Signal, StoreError, TaskFields};

use crate::{
    batch::{Batch, Receipt},
    context::EngineContext,
    input::Input,
    instance::{Instance, Standing, Unfit},
};

/// Decides the inputs from the first on. Stops early where the next decision needs this batch to be durable, or where
/// the workflow cannot go on; covers at least one input.
pub(super) async fn decide(
    context: &Arc<EngineContext>,
    instance: &mut Instance,
    inputs: &VecDeque<Input>,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    for input in inputs {
        let receipt = match input {
            // The cursor of the receipt is the newest log entry, which has no number yet.
            Input::Deliver(_) if batch.publishes => break,
            Input::Deliver(pending) => deliver(context, instance, &pending.delivery, batch).await?,
            Input::ActivityEnded { activity_id, outcome } => {
                silent(instance.activity_ended(activity_id, outcome, batch), batch)
            }
            Input::SignalArrived(activity_id) => {
                instance.forget_activity(activity_id, batch);
                Receipt::Silent
            }
            Input::TimersDue(_) => fire_timers(context, instance, batch).await?,
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

async fn deliver(
    context: &Arc<EngineContext>,
    instance: &mut Instance,
    delivery: &Delivery,
    batch: &mut Batch,
) -> Result<Receipt, StoreError> {
    let standing = instance.standing();
    if standing != Standing::Absent
        && let Some(cursor) = accepted_before(context, delivery, batch).await?
    {
        return Ok(Receipt::Delivered(Delivered::Duplicate { cursor }));
    }
    match standing {
        Standing::Closed => Ok(Receipt::Delivered(Delivered::Closed)),
        Standing::Absent => Ok(start(context, instance, delivery, batch)),
        Standing::Open => match &delivery.signal {
            None => Ok(Receipt::Delivered(Delivered::Duplicate { cursor: None })),
            Some(signal) => {
                let cursor = match instance.cursor() {
                    Some(cursor) => cursor,
                    None => newest_entry(context, &TaskId::from(&delivery.workflow_id)).await?,
                };
                Ok(admit(instance, delivery, signal, cursor, batch))
            }
        },
    }
}

/// The cursor of the first delivery with this key, if there was one.
async fn accepted_before(
    context: &Arc<EngineContext>,
    delivery: &Delivery,
    batch: &Batch,
) -> Result<Option<Option<u64>>, StoreError> {
    let Some(key) = delivery.signal.as_ref().and_then(|signal| signal.dedupe_key.as_deref()) else {
        return Ok(None);
    };
    match batch.delivered.get(key) {
        Some(cursor) => Ok(Some(*cursor)),
        None => context.store.delivery(&delivery.workflow_id, key).await,
    }
}

async fn newest_entry(context: &Arc<EngineContext>, task_id: &TaskId) -> Result<Option<u64>, StoreError> {
    let task = context.store.task(task_id, TaskFields::BARE).await?;
    Ok(task.map(|task| task.last_seq))
}

/// Begins a workflow, with its first signal if there is one.
fn start(
    context: &Arc<EngineContext>,
    instance: &mut Instance,
    delivery: &Delivery,
    batch: &mut Batch,
) -> Receipt {
    let Some(start) = &delivery.start else { return Receipt::Delivered(Delivered::NotFound) };
    let Some(definition) = context.definitions.get(start.workflow_type.as_str()) else {
        return Receipt::Failed(EngineError::UnknownType(start.workflow_type.clone()));
    };
    let position = batch.writes.len();
    batch.put_blocks(&delivery.blocks);
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
            batch.put_blocks(&delivery.blocks);
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
    context: &Arc<EngineContext>,
    instance: &mut Instance,
    batch: &mut Batch,
) -> Result<Receipt, StoreError> {
    let workflow_id = instance.workflow_id().clone();
    let mut changed = false;
    for timer in context.store.timers(&workflow_id).await? {
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
