//! The heartbeat of an agent as a Temporal schedule: every so often one of the workers ticks.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use temporalio_client::{
    Client, UntypedWorkflow,
    schedules::{
        CreateScheduleOptions, DeleteScheduleOptions, ScheduleAction, ScheduleError, ScheduleOverlapPolicy,
        ScheduleSpec,
    },
    tonic::Code,
};
use temporalio_common::ActivityDefinition;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ActivityOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, ExecutableActivity},
};
use temporalio_workflow::RetryPolicy;

use crate::{
    Address, AdminError,
    activities::{Activities, failure},
    connection::connect,
};

const WORKFLOW: &str = "HeartbeatWorkflow";
const SCHEDULE_ID: &str = "tiny-harness-heartbeat";
const WORKFLOW_ID: &str = "tiny-harness-heartbeat-run";
/// How long a tick may take: three steps of 60 s each, and what lies between them.
const TICK_LIMIT: Duration = Duration::from_secs(200);
/// After this long without a sign of life the worker that ticks counts as dead, and the next tick may come.
const BEAT_TIMEOUT: Duration = Duration::from_secs(15);
/// The shortest interval that Temporal takes.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// What an agent does from time to time. A tick has 200 s; when it fails, the next one comes nevertheless.
pub trait Heartbeat: Send + Sync {
    /// One tick. The error says what went wrong, for the log; Temporal sees only that something did.
    fn tick(&self) -> BoxFuture<'static, Result<(), String>>;
}

/// Started by the schedule; ticks once.
#[workflow]
#[derive(Default)]
pub(crate) struct HeartbeatWorkflow;

#[workflow_methods]
impl HeartbeatWorkflow {
    /// The input may be anything.
    #[run(name = "HeartbeatWorkflow")]
    pub(crate) async fn run(
        ctx: &mut WorkflowContext<Self>,
        _input: temporalio_common::data_converters::RawValue,
    ) -> WorkflowResult<()> {
        let options = ActivityOptions::with_start_to_close_timeout(TICK_LIMIT)
            .heartbeat_timeout(BEAT_TIMEOUT)
            .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
            .build();
        ctx.execute_activity(Tick, (), options).await?;
        Ok(())
    }
}

/// The activity that ticks.
pub(crate) struct Tick;

impl ActivityDefinition for Tick {
    type Input = ();
    type Output = ();

    fn name(&self) -> &str {
        "heartbeat_tick.v1"
    }
}

impl ExecutableActivity for Tick {
    type Implementer = Activities;
    const REQUIRES_INSTANCE: bool = true;

    fn definition() -> Self {
        Self
    }

    fn execute(
        receiver: Option<Arc<Activities>>,
        ctx: ActivityContext,
        _input: (),
    ) -> BoxFuture<'static, Result<(), ActivityError>> {
        Box::pin(async move {
            let activities = receiver.ok_or_else(|| failure("tick without its host"))?;
            let heartbeat = activities.heartbeat.as_ref();
            let tick = heartbeat.ok_or_else(|| failure("this worker has no heartbeat"))?.tick();
            let halt = activities.host.halt.child_token();
            let ended = tokio::select! {
                ended = halt.run_until_cancelled(tick) => ended,
                never = activities.beat(&ctx, &halt) => match never {},
            };
            match ended {
                Some(Ok(())) => Ok(()),
                Some(Err(reason)) => {
                    tracing::warn!(reason, "the heartbeat failed");
                    Err(failure("the tick failed; the log of the worker has the reason"))
                }
                None => Err(failure("the worker is stopping")),
            }
        })
    }
}

/// Makes the schedule by which one of the workers of the task queue ticks every `interval`, at least 1 s. One that is there
/// stays as it is. Errors: see [`AdminError`].
pub async fn ensure_heartbeat(
    address: &Address,
    id_prefix: &str,
    task_queue: &str,
    interval: Duration,
) -> Result<(), AdminError> {
    ensure(&connect(address).await?, id_prefix, task_queue, interval).await
}

/// Makes the schedule. One that is there stays as it is.
pub(crate) async fn ensure(
    client: &Client,
    id_prefix: &str,
    task_queue: &str,
    interval: Duration,
) -> Result<(), AdminError> {
    let action = ScheduleAction::start_workflow(
        UntypedWorkflow::new(WORKFLOW),
        crate::payload::json(&()),
        task_queue,
        format!("{id_prefix}{WORKFLOW_ID}"),
    );
    let options = CreateScheduleOptions::builder()
        .action(action)
        .spec(ScheduleSpec::from_interval(interval.max(INTERVAL_MIN)))
        .overlap_policy(ScheduleOverlapPolicy::Skip)
        .build();
    match client.create_schedule(format!("{id_prefix}{SCHEDULE_ID}"), options).await {
        Ok(_) => Ok(()),
        Err(ScheduleError::Rpc(status)) if status.code() == Code::AlreadyExists => Ok(()),
        Err(error) => Err(refused("make the heartbeat schedule", &error)),
    }
}

/// Deletes the heartbeat schedule of an agent. `false`: there was none. Errors: see [`AdminError`].
pub async fn delete_heartbeat(address: &Address, id_prefix: &str) -> Result<bool, AdminError> {
    let client = connect(address).await?;
    let schedule = client.get_schedule_handle(format!("{id_prefix}{SCHEDULE_ID}"));
    match schedule.delete(DeleteScheduleOptions::default()).await {
        Ok(()) => Ok(true),
        Err(ScheduleError::Rpc(status)) if status.code() == Code::NotFound => Ok(false),
        Err(error) => Err(refused("delete the heartbeat schedule", &error)),
    }
}

fn refused(what: &'static str, error: &ScheduleError) -> AdminError {
    if let ScheduleError::Rpc(status) = error {
        return AdminError::refused(what, status);
    }
    AdminError::Refused { what, reason: error.to_string() }
}
