//! After a start: brings back the workflows whose activities a process before this one left unfinished.

use std::{sync::Arc, time::Duration};

use harness_model::WorkflowId;
use tokio::sync::oneshot;

use crate::{context::EngineContext, input::Input};

/// Workflows that are brought back at a time.
const PAGE: usize = 64;
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Recovers until every workflow is back or the engine stops. A workflow that is signalled before its turn comes is
/// recovered by that.
pub(crate) async fn run(context: Arc<EngineContext>) {
    let stop = context.background.stop_token().clone();
    let _stopped = stop.run_until_cancelled(recover_all(&context)).await;
}

async fn recover_all(context: &Arc<EngineContext>) {
    let mut after: Option<WorkflowId> = None;
    let mut retry = RETRY_FIRST;
    let mut recovered = 0_usize;
    loop {
        match context.store.workflows_with_activities(after.as_ref(), PAGE).await {
            Ok(page) => {
                let Some(last) = page.last() else { break };
                after = Some(last.clone());
                recovered += page.len();
                recover_page(context, page).await;
                retry = RETRY_FIRST;
            }
            Err(error) => {
                tracing::warn!(%error, "unfinished workflows cannot be read");
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(RETRY_MAX);
            }
        }
    }
    if recovered > 0 {
        tracing::info!(recovered, "unfinished workflows are back");
    }
}

async fn recover_page(context: &Arc<EngineContext>, mut page: Vec<WorkflowId>) {
    let mut retry = RETRY_FIRST;
    loop {
        let mut waiting = Vec::with_capacity(page.len());
        for workflow_id in page.drain(..) {
            let (done, answer) = oneshot::channel();
            context.push(&workflow_id, Input::Recover(done));
            waiting.push((workflow_id, answer));
        }
        for (workflow_id, answer) in waiting {
            if answer.await.is_err() && !context.registry.is_set_aside(&workflow_id) {
                page.push(workflow_id);
            }
        }
        if page.is_empty() {
            return;
        }
        tokio::time::sleep(retry).await;
        retry = (retry * 2).min(RETRY_MAX);
    }
}
