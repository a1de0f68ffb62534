//! Ends the Temporal workflow of a task whose rows are gone.

use harness_model::WorkflowId;
use temporalio_client::{
    Client, UntypedWorkflow, WorkflowTerminateOptions, errors::WorkflowInteractionError,
};

use crate::{Address, AdminError, connection::connect};

/// What Temporal shows as the reason.
const REASON: &str = "its task was purged";

/// Terminates the Temporal workflow of a task. To be called after the rows of the task are deleted: before, whoever finds
/// the task unfinished would make the workflow anew. `false`: there was none that runs. Errors: see [`AdminError`].
pub async fn terminate(
    address: &Address,
    id_prefix: &str,
    workflow_id: &WorkflowId,
) -> Result<bool, AdminError> {
    end(&connect(address).await?, format!("{id_prefix}{workflow_id}")).await
}

pub(crate) async fn end(client: &Client, temporal_id: String) -> Result<bool, AdminError> {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(temporal_id);
    let options = WorkflowTerminateOptions::builder().reason(REASON).build();
    match handle.terminate(options).await {
        Ok(()) => Ok(true),
        Err(WorkflowInteractionError::NotFound(_)) => Ok(false),
        Err(error) => Err(AdminError::Refused { what: "terminate the workflow", reason: error.to_string() }),
    }
}
