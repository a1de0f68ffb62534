//! The inboxes of the workflows that are in memory, and which of them may leave it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use harness_model::WorkflowId;
use harness_ports::EngineError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    hosted::{Hosted, Rest},
    input::Input,
};

/// Workflows that are remembered as set aside. Beyond it the oldest is forgotten, and found out again when needed.
const SET_ASIDE_MAX: usize = 4_096;

/// Why a workflow cannot be hosted by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AsideReason {
    /// Nobody registered its type.
    UnknownType(String),
    /// Its history does not fit this build.
    Unfit(String),
}

impl AsideReason {
    pub(crate) fn error(&self, workflow_id: &WorkflowId) -> EngineError {
        match self {
            Self::UnknownType(workflow_type) => EngineError::UnknownType(workflow_type.clone()),
            Self::Unfit(reason) => {
                EngineError::SetAside { workflow_id: workflow_id.clone(), reason: reason.clone() }
            }
        }
    }
}

/// The answer to a delivery that wants into an inbox.
#[derive(Debug)]
pub(crate) enum Entry {
    /// There is a place.
    Place(OwnedSemaphorePermit),
    /// There is none; wait for one here.
    Full(Arc<Semaphore>),
}

/// Every inbox, behind one lock that is held for a few instructions at a time and never across an await.
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    inbox_capacity: usize,
    warm_max: usize,
}

#[derive(Default)]
struct Inner {
    slots: HashMap<WorkflowId, Slot>,
    /// Parked slots by age of their last use.
    warm: BTreeMap<u64, WorkflowId>,
    next_stamp: u64,
    aside: HashMap<WorkflowId, AsideReason>,
    aside_order: VecDeque<WorkflowId>,
    closed: bool,
}

struct Slot {
    queue: VecDeque<Input>,
    places: Arc<Semaphore>,
    phase: Phase,
}

enum Phase {
    /// No actor; the state waits here.
    Idle { hosted: Hosted, stamp: Option<u64> },
    /// An actor has the state.
    Acting,
}

impl Registry {
    pub(crate) fn new(inbox_capacity: usize, warm_max: usize) -> Self {
        Self { inner: Mutex::default(), inbox_capacity: inbox_capacity.max(1), warm_max }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a place in the inbox of a workflow.
    pub(crate) fn enter(&self, workflow_id: &WorkflowId) -> Result<Entry, EngineError> {
        let mut inner = self.lock();
        inner.admit(workflow_id)?;
        let places = Arc::clone(&inner.slot(workflow_id, self.inbox_capacity).places);
        Ok(match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => Entry::Place(place),
            Err(_) => Entry::Full(places),
        })
    }

    /// Queues an input; `wake` starts the actor when there is none. Gives the input back with the reason when no input
    /// is taken any more.
    pub(crate) fn push(
        &self,
        workflow_id: &WorkflowId,
        input: Input,
        wake: impl FnOnce(Hosted),
    ) -> Option<(Input, EngineError)> {
        let mut inner = self.lock();
        if let Err(error) = inner.admit(workflow_id) {
            return Some((input, error));
        }
        let slot = inner.slot(workflow_id, self.inbox_capacity);
        slot.queue.push_back(input);
        if let Phase::Idle { hosted, stamp } = std::mem::replace(&mut slot.phase, Phase::Acting) {
            if let Some(stamp) = stamp {
                inner.warm.remove(&stamp);
            }
            // Under the lock, so that after `close` no actor starts.
            wake(hosted);
        }
        None
    }

    /// Moves up to `limit` inputs, in order, to the end of `inputs`.
    pub(crate) fn take(&self, workflow_id: &WorkflowId, limit: usize, inputs: &mut VecDeque<Input>) {
        if let Some(slot) = self.lock().slots.get_mut(workflow_id) {
            let count = limit.min(slot.queue.len());
            inputs.extend(slot.queue.drain(..count));
        }
    }

    /// Ends the turn of an actor. Gives the state back when something was queued meanwhile.
    pub(crate) fn park(&self, workflow_id: &WorkflowId, hosted: Hosted) -> Option<Hosted> {
        // Dropped after the lock: states can be large.
        let mut evicted = Vec::new();
        let mut inner = self.lock();
        let slot = inner.slots.get_mut(workflow_id)?;
        if !slot.queue.is_empty() {
            return Some(hosted);
        }
        match hosted.rest() {
            Rest::Busy => slot.phase = Phase::Idle { hosted, stamp: None },
            Rest::Nothing => evicted.extend(inner.slots.remove(workflow_id)),
            Rest::Parked => {
                let stamp = inner.next_stamp;
                inner.next_stamp += 1;
                if let Some(slot) = inner.slots.get_mut(workflow_id) {
                    slot.phase = Phase::Idle { hosted, stamp: Some(stamp) };
                }
                inner.warm.insert(stamp, workflow_id.clone());
                while inner.warm.len() > self.warm_max
                    && let Some((_, oldest)) = inner.warm.pop_first()
                {
                    evicted.extend(inner.slots.remove(&oldest));
                }
            }
        }
        drop(inner);
        None
    }

    /// Takes a workflow out of service. Gives back what was queued for it; `None` when it was out already.
    pub(crate) fn set_aside(&self, workflow_id: &WorkflowId, reason: AsideReason) -> Option<VecDeque<Input>> {
        let mut inner = self.lock();
        let slot = inner.slots.remove(workflow_id);
        if inner.aside.insert(workflow_id.clone(), reason).is_some() {
            return None;
        }
        inner.aside_order.push_back(workflow_id.clone());
        if inner.aside_order.len() > SET_ASIDE_MAX
            && let Some(oldest) = inner.aside_order.pop_front()
        {
            inner.aside.remove(&oldest);
        }
        Some(slot.map(|slot| slot.queue).unwrap_or_default())
    }

    /// Whether a workflow is out of service.
    pub(crate) fn is_set_aside(&self, workflow_id: &WorkflowId) -> bool {
        self.lock().aside.contains_key(workflow_id)
    }

    /// Takes nothing any more and forgets every state that no actor has.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.warm.clear();
        let slots = std::mem::take(&mut inner.slots);
        drop(inner);
        drop(slots);
    }

    /// How many workflows are in memory.
    pub(crate) fn len(&self) -> usize {
        self.lock().slots.len()
    }
}

impl Inner {
    fn admit(&self, workflow_id: &WorkflowId) -> Result<(), EngineError> {
        if self.closed {
            return Err(EngineError::Stopping);
        }
        match self.aside.get(workflow_id) {
            Some(reason) => Err(reason.error(workflow_id)),
            None => Ok(()),
        }
    }

    fn slot(&mut self, workflow_id: &WorkflowId, inbox_capacity: usize) -> &mut Slot {
        self.slots.entry(workflow_id.clone()).or_insert_with(|| Slot {
            queue: VecDeque::new(),
            places: Arc::new(Semaphore::new(inbox_capacity)),
            phase: Phase::Idle { hosted: Hosted::default(), stamp: None },
        })
    }
}
