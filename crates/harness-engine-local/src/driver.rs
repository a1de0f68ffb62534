//! Activities as futures of this process, and an alarm clock.

use std::sync::Arc;

use harness_journal::{Changes, Driver, Found, Host, is_outbound, send_outbound};
use harness_model::WorkflowId;
use harness_ports::{ActivityTask, OnCrash, Write};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{activity_runner, timer_service::TimerAlarm};

/// Sees to everything in this process, the only one that hosts the workflows of the store.
pub(crate) struct LocalDriver {
    /// Places for running activities; waiters are served in order.
    places: Arc<Semaphore>,
    alarm: Arc<TimerAlarm>,
}

impl LocalDriver {
    pub(crate) fn new(activities_running_max: usize, alarm: Arc<TimerAlarm>) -> Self {
        Self { places: Arc::new(Semaphore::new(activities_running_max.max(1))), alarm }
    }
}

impl Driver for LocalDriver {
    fn shares_store(&self) -> bool {
        false
    }

    fn note(&self, _workflow_id: &WorkflowId, _changes: &Changes, _writes: &mut Vec<Write>) {}

    fn committed(&self, _host: &Arc<Host>, _workflow_id: &WorkflowId, changes: &Changes) {
        if let Some(due_at) = changes.first_due {
            self.alarm.expect(due_at);
        }
    }

    fn begin(
        &self,
        host: &Arc<Host>,
        workflow_id: &WorkflowId,
        task: ActivityTask,
    ) -> Option<CancellationToken> {
        Some(if is_outbound(&task) {
            send_outbound(host, workflow_id, task)
        } else {
            activity_runner::start(host, &self.places, workflow_id, task)
        })
    }

    fn found(&self, task: &ActivityTask) -> Found {
        match task.options.on_crash {
            OnCrash::Rerun => Found::ToBegin,
            OnCrash::ReportUnknown => Found::Lost,
        }
    }
}
