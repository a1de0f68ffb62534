//! Makes reports of what is left to do.

use std::sync::Arc;

use harness_journal::Host;
use harness_model::{TaskId, WorkflowId};
use harness_ports::{StoreError, TaskFields};

use crate::{
    activities::kind,
    protocol::{Labels, Report},
};

/// Makes reports.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    /// Names this process, when it is the only one that may run activities.
    pub(crate) epoch: Option<String>,
    /// The agent, when tasks are to be found by search attributes.
    pub(crate) label_agent: Option<String>,
    /// Events of a run after which a fresh one takes over.
    pub(crate) run_events_max: Option<u32>,
}

impl Reporter {
    /// What is left to do for a workflow. Errors: the store's.
    pub(crate) async fn report(
        &self,
        host: &Arc<Host>,
        workflow_id: &WorkflowId,
    ) -> Result<Report, StoreError> {
        let mut report = Report::of(host.work(workflow_id).await?, kind, self.epoch.clone());
        report.run_events_max = self.run_events_max;
        if let Some(agent) = &self.label_agent {
            let task = host.store.task(&TaskId::from(workflow_id), TaskFields::BARE).await?;
            report.labels = task.map(|task| Labels {
                context_id: task.record.context_id.to_string(),
                state: format!("TASK_STATE_{}", task.record.status.state.name()),
                agent: agent.clone(),
            });
        }
        Ok(report)
    }
}
