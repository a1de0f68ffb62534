//! A look at a Temporal server from outside, for people who want to know whether an agent can work.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use temporalio_client::{
    Client, WorkflowCountOptions, WorkflowDescribeOptions, WorkflowListOptions,
    tonic::{Code, IntoRequest},
};
use temporalio_common::protos::temporal::api::{
    enums::v1::TaskQueueType,
    taskqueue::v1::TaskQueue,
    workflowservice::v1::{DescribeNamespaceRequest, DescribeTaskQueueRequest, GetSystemInfoRequest},
};

use crate::{Address, AdminError, connection::connect, labels};

/// Open workflows that are looked at one by one.
const LOOKED_AT_MAX: usize = 200;
/// Requests under way at once.
const ASKING_MAX: usize = 16;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Version of the server.
    pub server_version: String,
    /// Whether the namespace is there. If not, the rest is empty.
    pub namespace_exists: bool,
    /// Who asks for work on the task queue.
    pub workers: Vec<Poller>,
    /// Workflows on the task queue that have not ended.
    pub open_workflows: usize,
    /// How many of them were looked at one by one, the newest first; at most 200, and all whose trouble the server knows.
    pub looked_at: usize,
    /// Those that cannot go on at the moment.
    pub stuck: Vec<StuckWorkflow>,
    /// Whether tasks can be found by search attributes.
    pub search_attributes: bool,
}

/// Who asks for work. A worker asks for both kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Poller {
    /// How it names itself.
    pub identity: String,
    /// Whether it asks for workflow tasks.
    pub workflows: bool,
    /// Whether it asks for activities.
    pub activities: bool,
}

/// A workflow whose current workflow task has failed or timed out at least once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StuckWorkflow {
    /// Its Temporal id.
    pub workflow_id: String,
    /// Number of the try that is under way or waits, from 2. Two may be a worker that went away; more are trouble.
    pub attempt: u32,
}

/// Looks at a server, a namespace and a task queue. Asks some hundreds of small questions at most.
/// Errors: see [`AdminError`]; that the namespace is missing is not one.
pub async fn inspect(address: &Address, task_queue: &str) -> Result<Inspection, AdminError> {
    let client = connect(address).await?;
    let mut service = client.connection().workflow_service();
    let info = service.get_system_info(GetSystemInfoRequest {}.into_request()).await;
    let info = info.map_err(|status| AdminError::refused("tell its version", &status))?.into_inner();
    let mut found = Inspection {
        server_version: info.server_version,
        namespace_exists: false,
        workers: Vec::new(),
        open_workflows: 0,
        looked_at: 0,
        stuck: Vec::new(),
        search_attributes: false,
    };
    let namespace = DescribeNamespaceRequest {
        namespace: address.namespace.clone(),
        ..DescribeNamespaceRequest::default()
    };
    match service.describe_namespace(namespace.into_request()).await {
        Ok(_) => found.namespace_exists = true,
        Err(status) if status.code() == Code::NotFound => return Ok(found),
        Err(status) => return Err(AdminError::refused("describe the namespace", &status)),
    }
    found.workers = pollers(&client, address, task_queue).await?;
    found.search_attributes = labels::are_registered(&client).await;
    look_at_workflows(&client, task_queue, &mut found).await?;
    Ok(found)
}

async fn pollers(client: &Client, address: &Address, task_queue: &str) -> Result<Vec<Poller>, AdminError> {
    let mut service = client.connection().workflow_service();
    let mut sets = Vec::new();
    for kind in [TaskQueueType::Workflow, TaskQueueType::Activity] {
        let request = DescribeTaskQueueRequest {
            namespace: address.namespace.clone(),
            task_queue: Some(TaskQueue { name: task_queue.to_owned(), ..TaskQueue::default() }),
            task_queue_type: kind.into(),
            ..DescribeTaskQueueRequest::default()
        };
        let described = service.describe_task_queue(request.into_request()).await;
        let described =
            described.map_err(|status| AdminError::refused("describe the task queue", &status))?;
        let identities = described.into_inner().pollers.into_iter().map(|poller| poller.identity);
        sets.push(identities.collect::<BTreeSet<String>>());
    }
    let asks = |set: usize, identity: &String| sets.get(set).is_some_and(|set| set.contains(identity));
    let all: BTreeSet<&String> = sets.iter().flatten().collect();
    let poller = |identity: &String| Poller {
        identity: identity.clone(),
        workflows: asks(0, identity),
        activities: asks(1, identity),
    };
    Ok(all.into_iter().map(poller).collect())
}

async fn look_at_workflows(
    client: &Client,
    task_queue: &str,
    found: &mut Inspection,
) -> Result<(), AdminError> {
    let refused = |error: &dyn std::fmt::Display| AdminError::Refused {
        what: "list workflows",
        reason: error.to_string(),
    };
    let queue = task_queue.replace(['\'', '\\'], "");
    let open = format!("ExecutionStatus = 'Running' AND TaskQueue = '{queue}'");
    let count = client.count_workflows(open.clone(), WorkflowCountOptions::default()).await;
    found.open_workflows = count.map_err(|error| refused(&error))?.count();
    let mut ids = BTreeSet::new();
    // Servers that do not know the attribute answer with an error.
    let troubled = format!("{open} AND TemporalReportedProblems IS NOT NULL");
    for (query, required) in [(troubled, false), (open, true)] {
        let options = WorkflowListOptions::builder().limit(LOOKED_AT_MAX).build();
        let mut listed = client.list_workflows(query, options);
        while let Some(execution) = listed.next().await {
            match execution {
                Ok(execution) => {
                    ids.insert(execution.id().to_owned());
                }
                Err(error) if required => return Err(refused(&error)),
                Err(_unknown_attribute) => break,
            }
        }
    }
    found.looked_at = ids.len();
    let attempts = stream::iter(ids).map(|id| attempt(client, id)).buffer_unordered(ASKING_MAX);
    let stuck = attempts.filter_map(|stuck| async move { stuck });
    found.stuck = stuck.collect::<BTreeSet<_>>().await.into_iter().collect();
    Ok(())
}

/// One that is gone meanwhile is not stuck.
async fn attempt(client: &Client, workflow_id: String) -> Option<StuckWorkflow> {
    let handle = client.get_workflow_handle::<temporalio_client::UntypedWorkflow>(workflow_id.clone());
    let described = handle.describe(WorkflowDescribeOptions::default()).await.ok()?;
    let attempt = described.raw_description.pending_workflow_task?.attempt;
    let attempt = u32::try_from(attempt).ok().filter(|attempt| *attempt > 1)?;
    Some(StuckWorkflow { workflow_id, attempt })
}
