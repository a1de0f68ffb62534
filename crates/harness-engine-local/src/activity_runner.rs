//! Runs activities: a place in the queue, then one execution.

use std::sync::Arc;

use harness_journal::{Cut, Host, run_activity};
use harness_model::WorkflowId;
use harness_ports::{ActivityContext, ActivityTask, OnCrash};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Starts an announced activity. Cancelling the token stops it; its end is then not reported.
pub(crate) fn start(
    host: &Arc<Host>,
    places: &Arc<Semaphore>,
    workflow_id: &WorkflowId,
    task: ActivityTask,
) -> CancellationToken {
    let cancel = host.halt.child_token();
    let run = Run {
        host: Arc::clone(host),
        places: Arc::clone(places),
        workflow_id: workflow_id.clone(),
        cancel: cancel.clone(),
    };
    host.work.spawn(run.run(task));
    cancel
}

struct Run {
    host: Arc<Host>,
    places: Arc<Semaphore>,
    workflow_id: WorkflowId,
    cancel: CancellationToken,
}

impl Run {
    async fn run(self, task: ActivityTask) {
        let activity_id = task.activity_id.clone();
        let Some(place) = self.place(task.options.on_crash).await else { return };
        let context = ActivityContext {
            workflow_id: self.workflow_id.clone(),
            run_id: self.host.ids.fresh(),
            started_at: self.host.clock.now(),
            cancel: self.cancel.clone(),
        };
        let cut = Cut { grace: self.host.options().cancel_grace, abandon: self.host.abandon.clone() };
        let outcome = run_activity(&self.host.activities, task, context, cut).await;
        drop(place);
        if let Some(outcome) = outcome
            && !self.cancel.is_cancelled()
        {
            self.host.activity_ended(&self.workflow_id, activity_id, outcome);
        }
    }

    /// Waits for a place; `None` when the activity is not to begin any more. An activity that may be repeated is left
    /// to the next process when this one is about to stop.
    async fn place(&self, on_crash: OnCrash) -> Option<OwnedSemaphorePermit> {
        let places = Arc::clone(&self.places);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            () = self.host.work.stop_token().cancelled(), if on_crash == OnCrash::Rerun => None,
            place = places.acquire_owned() => place.ok(),
        }
    }
}
