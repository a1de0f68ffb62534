//! What the history of a Temporal workflow takes.

use temporalio_client::{Client, UntypedWorkflow, WorkflowFetchHistoryOptions};
use temporalio_common::protos::temporal::api::{
    common::v1::{Payload, Payloads},
    history::v1::{HistoryEvent, history_event::Attributes},
};

use crate::world::World;

/// Over all runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) runs: usize,
    pub(crate) events: usize,
    /// As JSON, which is larger than what the server keeps.
    pub(crate) history_json: usize,
    pub(crate) largest_payload: usize,
}

impl Sizes {
    /// Of a workflow.
    pub(crate) async fn of_all_runs(world: &World, client: &Client, workflow_id: &str) -> Self {
        let mut sizes = Self::default();
        for events in runs(world, client, workflow_id).await {
            sizes.runs += 1;
            sizes.events += events.len();
            for event in &events {
                sizes.history_json += serde_json::to_vec(event).unwrap().len();
                sizes.largest_payload = sizes.largest_payload.max(largest(event));
            }
        }
        sizes
    }
}

/// The events of all runs of a workflow, the newest run first.
pub(crate) async fn runs(world: &World, client: &Client, workflow_id: &str) -> Vec<Vec<HistoryEvent>> {
    let mut runs = vec![world.history(client, workflow_id).into_events().await.unwrap()];
    loop {
        let events = runs.last().unwrap();
        let before = match events.first().and_then(|event| event.attributes.as_ref()) {
            Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
                started.continued_execution_run_id.clone()
            }
            other => panic!("a history that begins with {other:?}"),
        };
        if before.is_empty() {
            return runs;
        }
        let mut run = client.get_workflow_handle::<UntypedWorkflow>(workflow_id).info().clone();
        run.run_id = Some(before);
        let history = run.bind_untyped(client.clone()).fetch_history(WorkflowFetchHistoryOptions::default());
        runs.push(history.into_events().await.unwrap());
    }
}

/// The largest payload of those kinds of events that carry some here.
fn largest(event: &HistoryEvent) -> usize {
    let all = |payloads: &Option<Payloads>| payloads.as_ref().map_or(0, |all| most(&all.payloads));
    match event.attributes.as_ref() {
        Some(Attributes::WorkflowExecutionStartedEventAttributes(of)) => all(&of.input),
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(of)) => all(&of.input),
        Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(of)) => all(&of.input),
        Some(Attributes::WorkflowExecutionCompletedEventAttributes(of)) => all(&of.result),
        Some(Attributes::ActivityTaskScheduledEventAttributes(of)) => all(&of.input),
        Some(Attributes::ActivityTaskCompletedEventAttributes(of)) => all(&of.result),
        Some(Attributes::MarkerRecordedEventAttributes(of)) => {
            of.details.values().map(|details| most(&details.payloads)).max().unwrap_or_default()
        }
        _ => 0,
    }
}

fn most(payloads: &[Payload]) -> usize {
    payloads.iter().map(|payload| payload.data.len()).max().unwrap_or_default()
}
