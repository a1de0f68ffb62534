//! Sees to it that every unfinished workflow has a Temporal workflow: a person may have terminated it, and a server may
//! have lost its state.

use std::{future::Future, sync::Arc, time::Duration};

use futures::future::join_all;
use harness_model::WorkflowId;
use temporalio_client::{
    UntypedWorkflow, WorkflowDescribeOptions, WorkflowExecutionStatus, errors::WorkflowInteractionError,
};

use super::{PAGE, RETRY_FIRST, RETRY_MAX, Wakes};

impl Wakes {
    /// Wakes every workflow that has something announced, since whatever drove it before may be gone, and looks again
    /// from time to time whether one of them has lost its Temporal workflow.
    pub(crate) fn audit(self: &Arc<Self>, every: Duration) {
        let wakes = Arc::clone(self);
        self.group.spawn(async move {
            let stop = wakes.group.stop_token().clone();
            let work = async {
                wakes.insist(|id| wakes.wake_owned(id)).await;
                loop {
                    tokio::time::sleep(every).await;
                    wakes.insist(|id| wakes.wake_if_lost(id)).await;
                }
            };
            let _stopped = stop.run_until_cancelled(work).await;
        });
    }

    async fn insist<F: Future<Output = Result<(), String>>>(&self, act: impl Fn(WorkflowId) -> F) {
        let mut wait = RETRY_FIRST;
        while let Err(error) = self.for_unfinished(&act).await {
            tracing::warn!(error, "unfinished workflows cannot be woken yet");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    async fn for_unfinished<F: Future<Output = Result<(), String>>>(
        &self,
        act: impl Fn(WorkflowId) -> F,
    ) -> Result<(), String> {
        let mut after: Option<WorkflowId> = None;
        loop {
            let page = self.host.store.workflows_with_activities(after.as_ref(), PAGE).await;
            let page = page.map_err(|error| error.to_string())?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            join_all(page.into_iter().map(&act)).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
    }

    async fn wake_owned(self: &Arc<Self>, workflow_id: WorkflowId) -> Result<(), String> {
        self.wake(&workflow_id).await
    }

    async fn wake_if_lost(self: &Arc<Self>, workflow_id: WorkflowId) -> Result<(), String> {
        let handle = self.ways.client.get_workflow_handle::<UntypedWorkflow>(self.ways.id_of(&workflow_id));
        let lost = match handle.describe(WorkflowDescribeOptions::default()).await {
            Ok(description) => description.status() != WorkflowExecutionStatus::Running,
            Err(WorkflowInteractionError::NotFound(_)) => true,
            Err(error) => return Err(error.to_string()),
        };
        if lost { self.wake(&workflow_id).await } else { Ok(()) }
    }
}
