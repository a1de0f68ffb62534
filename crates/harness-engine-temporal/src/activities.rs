//! What Temporal runs: executions of activities, and orders to the host as local activities.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use harness_journal::{Cut, Host, run_activity};
use harness_model::{ActivityId, Timestamp, WorkflowId};
use harness_ports::{ActivityContext, ActivityTask, EngineError, OnCrash};
use temporalio_common::{ActivityDefinition, error::ApplicationFailure};
use temporalio_sdk::activities::{
    ActivityContext as TemporalContext, ActivityDefinitions, ActivityError, ActivityImplementer,
    ExecutableActivity,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Heartbeat,
    asides::Asides,
    heartbeat::Tick,
    protocol::{Ask, Execute, Order, Report},
    reporter::Reporter,
    running::Running,
};

/// Temporal activity types of the activities that have one of their own, and of all others. Never removed: workers of an
/// earlier build may have scheduled them.
const KINDS: [&str; 4] = ["run_activity.v1", "intake.v1", "invoke_model.v1", "invoke_tool.v1"];
/// Longest that an order waits for a clock that is behind.
const CLOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// Executions tell the server this often that they are alive, and hear this often whether they are still wanted.
const BEATS_PER_TIMEOUT: u32 = 5;

/// The Temporal activity type for an activity of this name.
pub(crate) fn kind(name: &str) -> &'static str {
    KINDS.iter().copied().find(|kind| *kind == name).unwrap_or(KINDS[0])
}

/// An activity by its Temporal type, to schedule it.
pub(crate) struct NamedActivity(pub(crate) String);

impl ActivityDefinition for NamedActivity {
    type Input = Execute;
    type Output = Report;

    fn name(&self) -> &str {
        &self.0
    }
}

/// The implementation of one of [`KINDS`].
struct Kind<const N: usize>;

impl<const N: usize> ActivityDefinition for Kind<N> {
    type Input = Execute;
    type Output = Report;

    fn name(&self) -> &str {
        KINDS.get(N).copied().unwrap_or(KINDS[0])
    }
}

impl<const N: usize> ExecutableActivity for Kind<N> {
    type Implementer = Activities;
    const REQUIRES_INSTANCE: bool = true;

    fn definition() -> Self {
        Self
    }

    fn execute(
        receiver: Option<Arc<Activities>>,
        ctx: TemporalContext,
        input: Execute,
    ) -> BoxFuture<'static, Result<Report, ActivityError>> {
        Box::pin(async move {
            let activities = receiver.ok_or_else(|| failure("activity without its host"))?;
            activities.execute(ctx, input).await
        })
    }
}

/// An order to the host.
pub(crate) struct AskHost;

impl ActivityDefinition for AskHost {
    type Input = Ask;
    type Output = Report;

    fn name(&self) -> &str {
        "ask_host.v1"
    }
}

impl ExecutableActivity for AskHost {
    type Implementer = Activities;
    const REQUIRES_INSTANCE: bool = true;

    fn definition() -> Self {
        Self
    }

    fn execute(
        receiver: Option<Arc<Activities>>,
        ctx: TemporalContext,
        input: Ask,
    ) -> BoxFuture<'static, Result<Report, ActivityError>> {
        Box::pin(async move {
            let activities = receiver.ok_or_else(|| failure("order without a host"))?;
            activities.obey(&ctx, input).await
        })
    }
}

/// The bodies.
pub(crate) struct Activities {
    pub(crate) host: Arc<Host>,
    pub(crate) reporter: Reporter,
    pub(crate) running: Arc<Running>,
    pub(crate) asides: Asides,
    pub(crate) heartbeat: Option<Arc<dyn Heartbeat>>,
}

impl ActivityImplementer for Activities {
    fn register_all(self: Arc<Self>, defs: &mut ActivityDefinitions) {
        defs.register_activity::<AskHost>(Arc::clone(&self));
        defs.register_activity::<Tick>(Arc::clone(&self));
        defs.register_activity::<Kind<0>>(Arc::clone(&self));
        defs.register_activity::<Kind<1>>(Arc::clone(&self));
        defs.register_activity::<Kind<2>>(Arc::clone(&self));
        defs.register_activity::<Kind<3>>(self);
    }
}

/// Why an execution gives no result.
enum Ended {
    /// Its end is recorded, or it has none to record.
    Settled,
    /// It was cut off; the workflow still wants it, or not.
    CutOff,
    /// This process can do no more for it.
    Unable(String),
}

impl Activities {
    async fn obey(&self, ctx: &TemporalContext, ask: Ask) -> Result<Report, ActivityError> {
        let Ask { task_id, what } = ask;
        let recorded = match what {
            Order::Report => true,
            Order::Lost(activity_id) => self.host.record_loss(&task_id, activity_id).await,
            Order::Fire(due) => {
                self.wait_for(due).await;
                self.host.fire_timers(&task_id).await.is_some()
            }
            Order::Send(activity_id) => self
                .host
                .send_signal(&task_id, activity_id)
                .await
                .map_err(|error| unsent(&task_id, &error))?,
            Order::Run(activity_id, attempt) => {
                return self.execute_announced(ctx, &task_id, &activity_id, attempt).await;
            }
        };
        if !recorded {
            return Ok(self.unable(&task_id));
        }
        self.report(&task_id).await
    }

    /// Timers never fire early by the clock that gives events their time.
    async fn wait_for(&self, due: Timestamp) {
        let wait = due.since(self.host.clock.now());
        if !wait.is_zero() {
            tokio::time::sleep(wait.min(CLOCK_WAIT_MAX)).await;
        }
    }

    fn unable(&self, task_id: &WorkflowId) -> Report {
        if self.host.is_set_aside(task_id) {
            self.asides.add(task_id);
            return Report::aside("set aside; see the log");
        }
        Report::aside("stopping")
    }

    async fn report(&self, task_id: &WorkflowId) -> Result<Report, ActivityError> {
        let report = self.reporter.report(&self.host, task_id).await;
        report.map_err(|error| failure(&format!("the store cannot be read: {}", error.code())))
    }

    async fn execute(&self, ctx: TemporalContext, input: Execute) -> Result<Report, ActivityError> {
        let Execute { task_id, activity_id, attempt, epoch, .. } = input;
        // Whoever drives the workflow takes it for lost; were it begun now, it would be while it runs.
        if self.reporter.epoch.is_some() && epoch != self.reporter.epoch {
            return Err(failure("scheduled for a process before this one"));
        }
        self.execute_announced(&ctx, &task_id, &activity_id, attempt).await
    }

    async fn execute_announced(
        &self,
        ctx: &TemporalContext,
        task_id: &WorkflowId,
        activity_id: &ActivityId,
        attempt: u32,
    ) -> Result<Report, ActivityError> {
        if self.host.is_draining() {
            return Err(failure("the worker is stopping"));
        }
        let task = match self.host.announced(task_id, activity_id).await {
            Ok(Some(task)) => task,
            Ok(None) => return self.report(task_id).await,
            Err(error) => return Err(failure(&format!("the store cannot be read: {}", error.code()))),
        };
        tracing::debug!(workflow_id = %task_id, %activity_id, name = task.name, attempt, "execution begins");
        match self.run(ctx, task_id, task).await {
            Ended::Settled => self.report(task_id).await,
            Ended::CutOff if ctx.is_cancelled() => Err(ActivityError::cancelled()),
            Ended::CutOff => Err(failure("the worker is stopping, or the activity is no longer wanted")),
            Ended::Unable(reason) => Err(failure(&reason)),
        }
    }

    async fn run(&self, ctx: &TemporalContext, task_id: &WorkflowId, task: ActivityTask) -> Ended {
        let activity_id = task.activity_id.clone();
        if task.options.on_crash == OnCrash::ReportUnknown {
            match self.host.claim(task_id, &activity_id).await {
                Ok(true) => {}
                Ok(false) => {
                    let recorded = self.host.record_loss(task_id, activity_id).await;
                    return if recorded { Ended::Settled } else { Ended::Unable("cannot record".to_owned()) };
                }
                Err(error) => return Ended::Unable(format!("cannot claim: {}", error.code())),
            }
        }
        let cancel = self.host.halt.child_token();
        let _listed = self.running.list(task_id, &activity_id, cancel.clone());
        let context = ActivityContext {
            workflow_id: task_id.clone(),
            run_id: self.host.ids.fresh(),
            started_at: self.host.clock.now(),
            cancel: cancel.clone(),
        };
        let cut = Cut { grace: self.host.options().cancel_grace, abandon: self.host.abandon.clone() };
        let execution = async {
            let outcome = run_activity(&self.host.activities, task, context, cut).await;
            match outcome {
                Some(outcome) if !cancel.is_cancelled() => {
                    if self.host.record_end(task_id, activity_id, outcome).await {
                        Ended::Settled
                    } else {
                        Ended::Unable("the end cannot be recorded here".to_owned())
                    }
                }
                Some(_) | None => Ended::CutOff,
            }
        };
        tokio::select! {
            ended = execution => ended,
            never = self.beat(ctx, &cancel) => match never {},
        }
    }

    /// Tells the server that the execution is alive, and the execution when it is no longer wanted.
    pub(crate) async fn beat(
        &self,
        ctx: &TemporalContext,
        cancel: &CancellationToken,
    ) -> std::convert::Infallible {
        let timeout = ctx.info().heartbeat_timeout.unwrap_or(Duration::from_secs(10));
        let mut beats = tokio::time::interval(timeout / BEATS_PER_TIMEOUT);
        loop {
            tokio::select! {
                () = ctx.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                _ = beats.tick() => {
                    if let Err(error) = ctx.record_heartbeat(()).await {
                        tracing::warn!(%error, "heartbeat cannot be sent");
                    }
                }
            }
        }
    }
}

fn unsent(task_id: &WorkflowId, error: &EngineError) -> ActivityError {
    tracing::warn!(workflow_id = %task_id, %error, "signal not delivered yet");
    failure(&format!("the signal cannot be delivered: {}", error.code()))
}

/// A failure that says as much as a history may: no text from outside.
pub(crate) fn failure(reason: &str) -> ActivityError {
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Reason(String);
    ApplicationFailure::builder(Reason(reason.to_owned())).non_retryable(true).build().into()
}
