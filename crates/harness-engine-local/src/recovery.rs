//! After a start: brings back the workflows whose activities a process before this one left unfinished.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use harness_journal::Host;
use harness_model::WorkflowId;
use tokio_util::sync::CancellationToken;

/// Workflows that are brought back at a time.
const PAGE: usize = 64;
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Recovers until every workflow is back or the engine stops. A workflow that is signalled before its turn comes is
/// recovered by that.
pub(crate) async fn run(host: Arc<Host>, stop: CancellationToken) {
    let _stopped = stop.run_until_cancelled(recover_all(&host)).await;
}

async fn recover_all(host: &Arc<Host>) {
    let mut after: Option<WorkflowId> = None;
    let mut retry = RETRY_FIRST;
    let mut recovered = 0_usize;
    loop {
        match host.store.workflows_with_activities(after.as_ref(), PAGE).await {
            Ok(page) => {
                let Some(last) = page.last() else { break };
                after = Some(last.clone());
                recovered += page.len();
                recover_page(host, page).await;
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

async fn recover_page(host: &Arc<Host>, mut page: Vec<WorkflowId>) {
    let mut retry = RETRY_FIRST;
    loop {
        let answers = join_all(page.iter().map(|workflow_id| host.recover(workflow_id))).await;
        let mut answers = answers.into_iter();
        page.retain(|workflow_id| {
            let recovered = answers.next().unwrap_or(true);
            !recovered && !host.is_set_aside(workflow_id)
        });
        if page.is_empty() {
            return;
        }
        tokio::time::sleep(retry).await;
        retry = (retry * 2).min(RETRY_MAX);
    }
}
