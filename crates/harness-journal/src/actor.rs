//! The actor of a workflow: takes what is queued, decides, commits, performs, and ends when nothing is left.

mod decide;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use harness_model::WorkflowId;
use harness_ports::{ActivityTask, EngineError, StoreError, WriteBatch};

use crate::{
    Changes, Found, Host,
    activity_run::outcome_unknown,
    batch::{Batch, Receipt},
    host::answer,
    hosted::Hosted,
    input::Input,
    instance::{Instance, Standing},
    registry::AsideReason,
};

/// Failed commits and reads in a row after which callers get the error. Inputs that nobody waits for are kept and tried
/// again, more and more slowly, until the store works or the engine stops.
const TRIES_MAX: u32 = 4;
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Conflicts in a row with other processes that host the same workflow, until one counts as a failure of the store.
const RACES_MAX: u32 = 64;
/// Longest wait after such a conflict; each waits another time, so that one of them wins.
const RACE_WAIT_MAX_MS: u64 = 16;

/// Drives a workflow until nothing is queued for it.
pub(crate) async fn run(host: Arc<Host>, workflow_id: WorkflowId, hosted: Hosted) {
    Actor { host, workflow_id, hosted, inputs: VecDeque::new(), failures: 0, races: 0 }.drive().await;
}

struct Actor {
    host: Arc<Host>,
    workflow_id: WorkflowId,
    hosted: Hosted,
    /// Taken from the inbox and not settled yet, oldest first.
    inputs: VecDeque<Input>,
    /// Failures of the store in a row.
    failures: u32,
    /// Conflicts with other processes in a row.
    races: u32,
}

/// Why a turn did not succeed.
enum TurnError {
    /// The store failed; nothing of the turn happened.
    Store(StoreError),
    /// The workflow cannot go on.
    Aside(AsideReason),
}

impl From<StoreError> for TurnError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { what } => {
                Self::Aside(AsideReason::Unfit(format!("stored data cannot be read: {what}")))
            }
            other @ (StoreError::Conflict { .. }
            | StoreError::Unavailable { .. }
            | StoreError::Locked { .. }) => Self::Store(other),
        }
    }
}

impl Actor {
    async fn drive(mut self) {
        let limit = self.host.options.batch_inputs_max.max(1);
        loop {
            let room = limit.saturating_sub(self.inputs.len());
            self.host.registry.take(&self.workflow_id, room, &mut self.inputs);
            if self.inputs.is_empty() {
                match self.host.registry.park(&self.workflow_id, self.hosted) {
                    Some(hosted) => self.hosted = hosted,
                    None => return,
                }
                continue;
            }
            match self.turn().await {
                Ok(()) => (self.failures, self.races) = (0, 0),
                Err(TurnError::Aside(reason)) => return self.set_aside(reason),
                Err(TurnError::Store(StoreError::Conflict { .. }))
                    if self.host.driver.shares_store() && self.races < RACES_MAX =>
                {
                    self.races += 1;
                    let pause = tokio::time::sleep(race_wait());
                    if self.host.halt.run_until_cancelled(pause).await.is_none() {
                        return;
                    }
                }
                Err(TurnError::Store(error)) => {
                    if let Some(reason) = self.store_failed(&error) {
                        return self.set_aside(reason);
                    }
                    if self.inputs.is_empty() {
                        self.failures = 0;
                        continue;
                    }
                    let wait =
                        RETRY_FIRST.saturating_mul(4_u32.saturating_pow(self.failures - 1)).min(RETRY_MAX);
                    let pause = tokio::time::sleep(wait);
                    if self.host.halt.run_until_cancelled(pause).await.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Settles some of the inputs, in order.
    async fn turn(&mut self) -> Result<(), TurnError> {
        let (mut instance, remembered) = match self.hosted.instance.take() {
            Some(instance) => (instance, true),
            None => (self.load().await?, false),
        };
        let mut batch = Batch::new(self.host.clock.now());
        decide::decide(&self.host, &mut instance, &self.inputs, &mut batch).await?;
        if remembered && batch.from_memory && self.host.driver.shares_store() {
            // Another process may know better; nothing in the batch would have told.
            instance = self.load().await?;
            batch = Batch::new(self.host.clock.now());
            decide::decide(&self.host, &mut instance, &self.inputs, &mut batch).await?;
        }
        if batch.unfit.is_none() {
            let tail_max = self.host.options.snapshot_tail_max;
            instance
                .snapshot_if_due(tail_max, &mut batch)
                .map_err(AsideReason::Unfit)
                .map_err(TurnError::Aside)?;
        }
        let changes = changes(&batch, &instance);
        let durable = !batch.writes.is_empty();
        if durable {
            let mut writes = std::mem::take(&mut batch.writes);
            self.host.driver.note(&self.workflow_id, &changes, &mut writes);
            let committed = self.host.store.commit(WriteBatch::new(batch.at, writes)).await?;
            instance.committed(&committed);
        }
        self.hosted.instance = Some(instance);
        let unfit = batch.unfit.take();
        self.perform(batch, durable.then_some(&changes));
        unfit.map_or(Ok(()), |reason| Err(TurnError::Aside(AsideReason::Unfit(reason))))
    }

    /// Reads the workflow and brings back the activities that nobody sees to any more.
    async fn load(&mut self) -> Result<Box<Instance>, TurnError> {
        let stored = self.host.store.workflow(&self.workflow_id).await?;
        let (instance, activities) =
            Instance::load(&self.workflow_id, stored, &self.host.definitions).map_err(TurnError::Aside)?;
        let mut lost = Vec::new();
        for task in activities {
            if self.hosted.running.contains_key(&task.activity_id) {
                continue;
            }
            match self.host.driver.found(&task) {
                Found::ToBegin => self.start(task),
                Found::Lost => {
                    let outcome = Err(outcome_unknown(&task.name));
                    lost.push(Input::ActivityEnded { activity_id: task.activity_id, outcome, done: None });
                }
                Found::Elsewhere => {}
            }
        }
        // What happened before the restart comes before what was asked after it.
        for input in lost.into_iter().rev() {
            self.inputs.push_front(input);
        }
        Ok(Box::new(instance))
    }

    fn start(&mut self, task: ActivityTask) {
        let activity_id = task.activity_id.clone();
        if let Some(cancel) = self.host.driver.begin(&self.host, &self.workflow_id, task) {
            self.hosted.running.insert(activity_id, cancel);
        }
    }

    /// Does what a durable batch asks for.
    fn perform(&mut self, batch: Batch, changes: Option<&Changes>) {
        for activity_id in batch.cancel {
            if let Some(cancel) = self.hosted.running.remove(&activity_id) {
                cancel.cancel();
            }
        }
        for task in batch.start {
            self.start(task);
        }
        if let Some(changes) = changes {
            self.host.driver.committed(&self.host, &self.workflow_id, changes);
        }
        for receipt in batch.receipts {
            let Some(input) = self.inputs.pop_front() else { return };
            self.settle(input, receipt);
        }
    }

    fn settle(&mut self, input: Input, receipt: Receipt) {
        match (input, receipt) {
            (Input::Deliver(pending), Receipt::Delivered(delivered)) => answer(pending.reply, Ok(delivered)),
            (Input::Deliver(pending), Receipt::Failed(error)) => answer(pending.reply, Err(error)),
            // Without a receipt the caller sees the channel close.
            (Input::Deliver(_), Receipt::Silent | Receipt::Timers { .. }) => {}
            (
                Input::ActivityEnded { activity_id, done, .. } | Input::SignalArrived { activity_id, done },
                _,
            ) => {
                self.hosted.running.remove(&activity_id);
                let _nobody_waits = done.map(|done| done.send(()));
            }
            (Input::ActivityLost { done, .. }, _) => {
                let _nobody_waits = done.send(());
            }
            (Input::TimersDue(done), receipt) => {
                let _nobody_waits = done.send(matches!(receipt, Receipt::Timers { changed: true }));
            }
            (Input::Recover(done), _) => {
                let _nobody_waits = done.send(());
            }
        }
    }

    /// Prepares another try: the state in memory is ahead of the store and has gone. Gives the reason when there is no
    /// point in another one.
    fn store_failed(&mut self, error: &StoreError) -> Option<AsideReason> {
        self.failures = self.failures.saturating_add(1);
        tracing::warn!(workflow_id = %self.workflow_id, %error, failures = self.failures, "workflow waits for the store");
        if self.failures < TRIES_MAX {
            return None;
        }
        for input in std::mem::take(&mut self.inputs) {
            match input {
                Input::Deliver(pending) => answer(pending.reply, Err(EngineError::Store(again(error)))),
                // Whoever asked sees the channel close, and asks again.
                Input::TimersDue(_) | Input::Recover(_) => {}
                kept @ (Input::ActivityEnded { .. }
                | Input::ActivityLost { .. }
                | Input::SignalArrived { .. }) => self.inputs.push_back(kept),
            }
        }
        match error {
            StoreError::Conflict { what } => {
                Some(AsideReason::Unfit(format!("the store refuses its changes: {what}")))
            }
            StoreError::Unavailable { .. } | StoreError::Locked { .. } | StoreError::Corrupt { .. } => None,
        }
    }

    /// Gives the workflow up for the life of this process. What is announced stays announced, for a build that can.
    fn set_aside(mut self, reason: AsideReason) {
        tracing::error!(workflow_id = %self.workflow_id, ?reason, "workflow is set aside");
        for cancel in self.hosted.running.values() {
            cancel.cancel();
        }
        let queued = self.host.registry.set_aside(&self.workflow_id, reason.clone());
        self.inputs.extend(queued.into_iter().flatten());
        for input in self.inputs {
            if let Input::Deliver(pending) = input {
                answer(pending.reply, Err(reason.error(&self.workflow_id)));
            }
        }
    }
}

/// The same error once more, for another caller. The cause has been logged with the first one.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Conflict { what } => StoreError::Conflict { what: what.clone() },
        StoreError::Unavailable { what, .. } => StoreError::Unavailable { what: what.clone(), source: None },
        StoreError::Locked { path } => StoreError::Locked { path: path.clone() },
        StoreError::Corrupt { what } => StoreError::Corrupt { what: what.clone() },
    }
}

fn changes(batch: &Batch, instance: &Instance) -> Changes {
    Changes {
        seq: instance.next_seq(),
        closed: instance.standing() == Standing::Closed,
        starts: !batch.start.is_empty(),
        stopped: batch.cancel.clone(),
        timers: !batch.touched_timers.is_empty(),
        first_due: batch.first_due,
        unasked: batch.unasked,
    }
}

/// A short wait that differs from process to process.
fn race_wait() -> Duration {
    let random = getrandom::u64().unwrap_or_default();
    Duration::from_millis(1 + random % RACE_WAIT_MAX_MS)
}
