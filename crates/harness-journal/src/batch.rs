//! What a run of inputs causes: the writes of one commit, and what happens once they are durable.

use std::collections::{HashMap, HashSet};

use harness_model::{ActivityId, TaskId, TimerId, Timestamp};
use harness_ports::{ActivityTask, Block, Delivered, Delivery, EngineError, Write};

/// Collected while events are applied, committed whole, performed after that.
pub(crate) struct Batch {
    /// Time of every event and write.
    pub(crate) at: Timestamp,
    pub(crate) writes: Vec<Write>,
    /// One for each input that the batch covers, in order.
    pub(crate) receipts: Vec<Receipt>,
    /// Activities to start, once announced.
    pub(crate) start: Vec<ActivityTask>,
    /// Activities to stop.
    pub(crate) cancel: Vec<ActivityId>,
    /// When the first timer of the batch is due.
    pub(crate) first_due: Option<Timestamp>,
    /// Timers that the batch starts or removes: about them the store is out of date.
    pub(crate) touched_timers: HashSet<TimerId>,
    /// Keys of signals that the batch records, with their cursors.
    pub(crate) delivered: HashMap<String, Option<u64>>,
    /// Whether the batch appends to the workflow's own event log: then the next cursor is known only after the commit.
    pub(crate) publishes: bool,
    /// Whether the workflow asked for a snapshot.
    pub(crate) checkpoint: bool,
    /// Whether a delivery from outside is among the causes.
    pub(crate) unasked: bool,
    /// Whether an input was settled by what is in memory alone, so that no write would show that it is out of date.
    pub(crate) from_memory: bool,
    /// Why the workflow cannot go on after the events of this batch.
    pub(crate) unfit: Option<String>,
}

/// The answer to one input.
#[derive(Debug)]
pub(crate) enum Receipt {
    /// Nobody asks.
    Silent,
    /// To a delivery.
    Delivered(Delivered),
    /// To a delivery that could not be decided.
    Failed(EngineError),
    /// To whoever watches the clock: whether timers went off or were cleared away.
    Timers { changed: bool },
}

impl Batch {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self {
            at,
            writes: Vec::new(),
            receipts: Vec::new(),
            start: Vec::new(),
            cancel: Vec::new(),
            first_due: None,
            touched_timers: HashSet::new(),
            delivered: HashMap::new(),
            publishes: false,
            checkpoint: false,
            unasked: false,
            from_memory: false,
            unfit: None,
        }
    }

    pub(crate) fn put_blocks(&mut self, delivery: &Delivery) {
        let task_id = TaskId::from(&delivery.workflow_id);
        let put = |block: &Block| Write::PutBlock { block: block.clone(), task_id: task_id.clone() };
        self.writes.extend(delivery.blocks.iter().map(put));
    }

    /// Forgets the writes from this position on: what should have justified them did not happen.
    pub(crate) fn take_back(&mut self, position: usize) {
        self.writes.truncate(position);
    }
}
