//! What every part of the engine shares.

use std::{collections::HashMap, sync::Arc};

use harness_model::WorkflowId;
use harness_ports::{
    ActivityHost, Clock, Delivered, Delivery, EngineError, IdSource, Store, TaskGroup, WorkflowDefinition,
};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    EngineOptions, actor,
    hosted::Hosted,
    input::{Input, PendingDelivery, Reply},
    registry::{Entry, Registry},
    timer_service::TimerAlarm,
};

/// The parts of one engine, shared by its actors, activities and loops.
pub(crate) struct EngineContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) activities: Arc<dyn ActivityHost>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) definitions: HashMap<&'static str, Arc<dyn WorkflowDefinition>>,
    pub(crate) options: EngineOptions,
    pub(crate) registry: Registry,
    pub(crate) alarm: TimerAlarm,
    /// Places for running activities; waiters are served in order.
    pub(crate) activity_places: Arc<Semaphore>,
    /// Actors and activities. Each hand-over spawns the successor before the predecessor ends, so the group is empty
    /// exactly when nothing is left to do. Its stop token means: begin nothing that can as well be done after a restart.
    pub(crate) work: TaskGroup,
    /// The loops: recovery and timers.
    pub(crate) background: TaskGroup,
    /// Parent of every activity's token. Cancelled at the end of a drain: from then on nothing is recorded.
    pub(crate) halt: CancellationToken,
    /// Cancelled when the time for a cooperative end is over as well.
    pub(crate) abandon: CancellationToken,
}

impl EngineContext {
    /// Whether the engine is on its way down.
    pub(crate) fn is_draining(&self) -> bool {
        self.work.stop_token().is_cancelled()
    }

    /// Delivers a signal and waits for its receipt; waits as well when the inbox is full.
    pub(crate) async fn deliver(self: &Arc<Self>, delivery: Delivery) -> Result<Delivered, EngineError> {
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

    /// Puts an input into the inbox of a workflow and wakes its actor. An input that cannot be taken any more, because
    /// the engine has stopped or the workflow is set aside, is answered.
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

/// Answers a delivery. A caller that no longer waits is no problem: what was decided is durable.
pub(crate) fn answer(reply: Reply, receipt: Result<Delivered, EngineError>) {
    drop(reply.send(receipt));
}
