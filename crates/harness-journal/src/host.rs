//! What every part shares, and what a driver may ask for.

use std::{collections::HashMap, fmt, sync::Arc};

use harness_model::{ActivityId, WorkflowId};
use harness_ports::{
    ActivityFailure, ActivityHost, ActivityTask, Clock, Delivered, Delivery, EngineError, IdSource, Store,
    StoreError, TaskGroup, WorkflowDefinition, Write, WriteBatch,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    Driver, HostOptions, actor,
    hosted::Hosted,
    input::{Done, Input, PendingDelivery, Reply},
    registry::{Entry, Registry},
};

/// What a host is made of.
pub struct HostParts {
    /// Keeps everything.
    pub store: Arc<dyn Store>,
    /// Runs the activities.
    pub activities: Arc<dyn ActivityHost>,
    /// Gives events their time.
    pub clock: Arc<dyn Clock>,
    /// Names executions of activities.
    pub ids: Arc<dyn IdSource>,
    /// The workflow types that are hosted.
    pub workflows: Vec<Arc<dyn WorkflowDefinition>>,
    /// Sees to activities and timers.
    pub driver: Arc<dyn Driver>,
}

impl fmt::Debug for HostParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> = self.workflows.iter().map(|definition| definition.workflow_type()).collect();
        f.debug_struct("HostParts").field("workflows", &types).finish_non_exhaustive()
    }
}

/// Hosts workflows. Shared by its actors and its driver.
pub struct Host {
    /// Keeps everything.
    pub store: Arc<dyn Store>,
    /// Runs the activities.
    pub activities: Arc<dyn ActivityHost>,
    /// Gives events their time.
    pub clock: Arc<dyn Clock>,
    /// Names executions of activities.
    pub ids: Arc<dyn IdSource>,
    /// Actors and activities. Each hand-over spawns the successor before the predecessor ends, so the group is empty
    /// exactly when nothing is left to do. Its stop token means: begin nothing that can as well be done after a restart.
    pub work: TaskGroup,
    /// Parent of every activity's token. Cancelled at the end of a drain: from then on nothing is recorded.
    pub halt: CancellationToken,
    /// Cancelled when the time for a cooperative end is over as well.
    pub abandon: CancellationToken,
    pub(crate) definitions: HashMap<&'static str, Arc<dyn WorkflowDefinition>>,
    pub(crate) options: HostOptions,
    pub(crate) registry: Registry,
    pub(crate) driver: Arc<dyn Driver>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("in_memory", &self.workflows_in_memory()).finish_non_exhaustive()
    }
}

impl Host {
    /// A host without workflows in memory.
    pub fn new(parts: HostParts, options: HostOptions) -> Arc<Self> {
        let definitions =
            parts.workflows.into_iter().map(|definition| (definition.workflow_type(), definition)).collect();
        Arc::new(Self {
            store: parts.store,
            activities: parts.activities,
            clock: parts.clock,
            ids: parts.ids,
            work: TaskGroup::new(),
            halt: CancellationToken::new(),
            abandon: CancellationToken::new(),
            definitions,
            registry: Registry::new(options.inbox_capacity, options.warm_workflows_max),
            options,
            driver: parts.driver,
        })
    }

    /// The limits.
    pub fn options(&self) -> &HostOptions {
        &self.options
    }

    /// Whether the host is on its way down.
    pub fn is_draining(&self) -> bool {
        self.work.stop_token().is_cancelled()
    }

    /// Takes no input any more, and forgets every state that no actor has.
    pub fn close(&self) {
        self.registry.close();
    }

    /// How many workflows have state in memory now: those with something to do, and a bounded number of warm ones.
    pub fn workflows_in_memory(&self) -> usize {
        self.registry.len()
    }

    /// Whether this process has given a workflow up.
    pub fn is_set_aside(&self, workflow_id: &WorkflowId) -> bool {
        self.registry.is_set_aside(workflow_id)
    }

    /// Delivers a signal and waits for its receipt; waits as well when the inbox is full. Goes on during a drain.
    /// Errors: as [`harness_ports::Engine::deliver`].
    pub async fn deliver(self: &Arc<Self>, delivery: Delivery) -> Result<Delivered, EngineError> {
        let workflow_id = delivery.workflow_id.clone();
        let (reply, receipt) = oneshot::channel();
        let place = match self.registry.enter(&workflow_id)? {
            Entry::Place(place) => place,
            // The semaphore is never closed.
            Entry::Full(inbox) => inbox.acquire_owned().await.map_err(|_| EngineError::Stopping)?,
        };
        let pending = PendingDelivery { delivery, reply, _place: place };
        self.push(&workflow_id, Input::Deliver(Box::new(pending)));
        receipt.await.unwrap_or(Err(EngineError::Stopping))
    }

    /// Hands in the end of an activity; nobody waits until it is recorded.
    pub fn activity_ended(
        self: &Arc<Self>,
        workflow_id: &WorkflowId,
        activity_id: ActivityId,
        outcome: Result<Value, ActivityFailure>,
    ) {
        self.push(workflow_id, Input::ActivityEnded { activity_id, outcome, done: None });
    }

    /// Records the end of an activity. One that is not announced any more is no news. `false` when this process cannot:
    /// it stops, or the workflow is set aside.
    pub async fn record_end(
        self: &Arc<Self>,
        workflow_id: &WorkflowId,
        activity_id: ActivityId,
        outcome: Result<Value, ActivityFailure>,
    ) -> bool {
        self.ask(workflow_id, |done| Input::ActivityEnded { activity_id, outcome, done: Some(done) }).await
    }

    /// An execution of an activity went away without an end. If it may have had an effect that must not be repeated, its
    /// outcome is recorded as unknown; otherwise it stays announced, to be executed again. `false` as above.
    pub async fn record_loss(self: &Arc<Self>, workflow_id: &WorkflowId, activity_id: ActivityId) -> bool {
        self.ask(workflow_id, |done| Input::ActivityLost { activity_id, done }).await
    }

    /// Lets a workflow take the timers that are due. Says whether the store has changed; `None` as `false` above.
    pub async fn fire_timers(self: &Arc<Self>, workflow_id: &WorkflowId) -> Option<bool> {
        let (done, answer) = oneshot::channel();
        self.push(workflow_id, Input::TimersDue(done));
        answer.await.ok()
    }

    /// Reads a workflow into memory, which begins what is found to be begun. `false` when it cannot be now.
    pub async fn recover(self: &Arc<Self>, workflow_id: &WorkflowId) -> bool {
        self.ask(workflow_id, Input::Recover).await
    }

    /// Claims the one execution of an activity that must not be repeated. `false` when it was claimed before: then it
    /// may have run, and must not run again. Errors: the store's.
    pub async fn claim(
        &self,
        workflow_id: &WorkflowId,
        activity_id: &ActivityId,
    ) -> Result<bool, StoreError> {
        let write = Write::RecordDelivery {
            workflow_id: workflow_id.clone(),
            dedupe_key: claim_key(activity_id),
            cursor: None,
        };
        match self.store.commit(WriteBatch::new(self.clock.now(), vec![write])).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An announced activity with its input; `None` when it is not announced any more. Errors: the store's.
    pub async fn announced(
        &self,
        workflow_id: &WorkflowId,
        activity_id: &ActivityId,
    ) -> Result<Option<ActivityTask>, StoreError> {
        let stored = self.store.workflow(workflow_id).await?;
        let mut activities = stored.map(|stored| stored.activities).unwrap_or_default().into_iter();
        Ok(activities.find(|task| task.activity_id == *activity_id))
    }

    pub(crate) async fn ask(
        self: &Arc<Self>,
        workflow_id: &WorkflowId,
        input: impl FnOnce(Done) -> Input,
    ) -> bool {
        let (done, answer) = oneshot::channel();
        self.push(workflow_id, input(done));
        answer.await.is_ok()
    }

    /// Puts an input into the inbox of a workflow and wakes its actor. An input that cannot be taken any more, because
    /// the host has stopped or the workflow is set aside, is answered.
    pub(crate) fn push(self: &Arc<Self>, workflow_id: &WorkflowId, input: Input) {
        let refused = self.registry.push(workflow_id, input, |hosted| self.wake(workflow_id, hosted));
        if let Some((input, error)) = refused
            && let Input::Deliver(pending) = input
        {
            answer(pending.reply, Err(error));
        }
    }

    fn wake(self: &Arc<Self>, workflow_id: &WorkflowId, hosted: Hosted) {
        self.work.spawn(actor::run(Arc::clone(self), workflow_id.clone(), hosted));
    }
}

/// The key under which the execution of an activity is claimed.
pub(crate) fn claim_key(activity_id: &ActivityId) -> String {
    format!("engine:begun:{activity_id}")
}

/// Answers a delivery. A caller that no longer waits is no problem: what was decided is durable.
pub(crate) fn answer(reply: Reply, receipt: Result<Delivered, EngineError>) {
    drop(reply.send(receipt));
}
