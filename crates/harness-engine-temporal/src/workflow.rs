//! The Temporal workflow of a task: begins and stops what its [`Board`] says, and waits for the next news. It decides
//! nothing about the task itself and holds no content, so no change of an agent can make a history unreadable.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, UNIX_EPOCH},
};

use futures::future::LocalBoxFuture;
use harness_model::{Timestamp, WorkflowId};
use temporalio_common::data_converters::RawValue;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ActivityCancellationType, ActivityOptions, ContinueAsNewOptions, LocalActivityOptions,
    SyncWorkflowContext, TimerOptions, WaitConditionOptions, WorkflowCancellationToken, WorkflowContext,
    WorkflowContextView, WorkflowResult,
};
use temporalio_workflow::RetryPolicy;

use crate::{
    activities::{AskHost, NamedActivity},
    board::{Begin, Board, End, Job},
    protocol::{Ask, Execute, Order, Report},
};

/// Events of a run after which a fresh one takes over, when the server has not suggested it before.
const HISTORY_EVENTS_MAX: u32 = 4_000;
/// Longest an order may take; longer ones are tried again by the worker.
const ORDER_LIMIT: Duration = Duration::from_secs(30);
/// Beyond the activity's own limit, which the worker watches: for a worker that does not.
const LIMIT_SLACK: Duration = Duration::from_secs(15);

/// Waits are at least this long, so that clocks that differ cannot make a loop of them.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Drives one workflow of the journal.
#[workflow]
#[derive(Default)]
pub(crate) struct TaskWorkflow {
    prefix: String,
    heartbeat: Duration,
    /// Reports that came with signals.
    mail: Vec<Report>,
    /// Signals that came without one.
    rung: bool,
    /// For the query.
    shown: Report,
}

impl TaskWorkflow {
    /// A workflow that has not begun. `prefix` is what its Temporal id has before the id of the task.
    pub(crate) fn new(prefix: String, heartbeat: Duration) -> Self {
        Self { prefix, heartbeat, mail: Vec::new(), rung: false, shown: Report::default() }
    }
}

#[workflow_methods]
impl TaskWorkflow {
    /// Runs until the workflow of the journal has ended. The input may be anything; a report saves a question.
    #[run(name = "TaskWorkflow")]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>, input: RawValue) -> WorkflowResult<()> {
        let mut board = Board::default();
        if let Some(report) = read(&input) {
            board.learn(report);
        }
        let (prefix, heartbeat) = ctx.state(|state| (state.prefix.clone(), state.heartbeat));
        let task_id = ctx.workflow_id().strip_prefix(prefix.as_str()).unwrap_or(ctx.workflow_id()).to_owned();
        let mut driver =
            Run { ctx: ctx.clone(), task_id: WorkflowId::new(task_id), heartbeat, jobs: Vec::new() };
        loop {
            driver.read_mail(&mut board);
            if board.is_finished() {
                return Ok(());
            }
            if board.is_quiet() && driver.history_is_long() {
                let report = board.known().cloned().unwrap_or_default();
                ctx.continue_as_new(write(&report), ContinueAsNewOptions::default())?;
            }
            let plan = board.plan(driver.now());
            for job in plan.stop {
                driver.stop(&job);
            }
            for (job, begin) in plan.begin {
                driver.begin(job, begin);
            }
            for (job, end) in driver.news().await {
                board.ended(&job, end);
            }
        }
    }

    /// Something is to be done. The payload may be anything; a report saves a question.
    #[signal(name = "wake")]
    pub(crate) fn wake(&mut self, _ctx: &mut SyncWorkflowContext<Self>, input: RawValue) {
        match read(&input) {
            Some(report) => self.mail.push(report),
            None => self.rung = true,
        }
    }

    /// What the workflow waits for.
    #[query(name = "monitor")]
    pub(crate) fn monitor(&self, _ctx: &WorkflowContextView, _input: RawValue) -> Report {
        self.shown.clone()
    }
}

/// One run of the workflow.
struct Run {
    ctx: WorkflowContext<TaskWorkflow>,
    task_id: WorkflowId,
    heartbeat: Duration,
    /// In the order they were begun.
    jobs: Vec<UnderWay>,
}

struct UnderWay {
    job: Job,
    token: WorkflowCancellationToken,
    end: LocalBoxFuture<'static, End>,
}

impl Run {
    fn read_mail(&self, board: &mut Board) {
        let (mail, rung) =
            self.ctx.state_mut(|state| (std::mem::take(&mut state.mail), std::mem::take(&mut state.rung)));
        for report in mail {
            if report.aside.is_none() {
                board.learn(report);
            }
        }
        if rung {
            board.look();
        }
        let shown = board.known().cloned().unwrap_or_default();
        self.ctx.state_mut(|state| state.shown = shown);
    }

    fn history_is_long(&self) -> bool {
        self.ctx.continue_as_new_suggested() || self.ctx.history_length() > HISTORY_EVENTS_MAX
    }

    fn now(&self) -> Timestamp {
        let time = self.ctx.workflow_time().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let millis = time.map_or(0, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        Timestamp::from_millis(millis)
    }

    fn stop(&mut self, job: &Job) {
        self.jobs.retain(|under_way| {
            let stays = under_way.job != *job;
            if !stays {
                under_way.token.cancel();
            }
            stays
        });
    }

    fn begin(&mut self, job: Job, begin: Begin) {
        // Jobs do not inherit a cancellation of the Temporal workflow: tasks are canceled through the harness.
        let token = WorkflowCancellationToken::new();
        let end = match begin {
            Begin::Run(activity, attempt) => {
                let limit = Duration::from_millis(activity.limit_ms).saturating_add(LIMIT_SLACK);
                let options = ActivityOptions::with_start_to_close_timeout(limit)
                    .heartbeat_timeout(self.heartbeat)
                    .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
                    .activity_id(format!("{}#{attempt}", activity.id))
                    .cancellation_type(ActivityCancellationType::TryCancel)
                    .cancellation_token(token.clone())
                    .build();
                let input = Execute {
                    correlation_id: self.task_id.to_string(),
                    task_id: self.task_id.clone(),
                    activity_id: activity.id,
                    attempt,
                };
                let ctx = self.ctx.clone();
                end_of(
                    async move { ctx.execute_activity(NamedActivity(activity.kind), input, options).await },
                )
            }
            Begin::Order => self.order(&job, token.clone()),
            Begin::Fire(due) => self.ask(Order::Fire(due), token.clone()),
            Begin::Wait(duration) => {
                let options =
                    TimerOptions::builder(duration.max(WAIT_MIN)).cancellation_token(token.clone()).build();
                let ctx = self.ctx.clone();
                Box::pin(async move {
                    ctx.timer(options).await;
                    End::Waited
                })
            }
        };
        self.jobs.push(UnderWay { job, token, end });
    }

    fn order(&self, job: &Job, token: WorkflowCancellationToken) -> LocalBoxFuture<'static, End> {
        let order = match job {
            Job::Lose(id) => Order::Lost(id.clone()),
            Job::Send(id) => Order::Send(id.clone()),
            Job::Run(_) | Job::Sleep(_) | Job::Fire | Job::Look => Order::Report,
        };
        self.ask(order, token)
    }

    fn ask(&self, what: Order, token: WorkflowCancellationToken) -> LocalBoxFuture<'static, End> {
        let options = LocalActivityOptions::builder()
            .start_to_close_timeout(ORDER_LIMIT)
            .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
            .cancellation_token(token)
            .build();
        let ask = Ask { task_id: self.task_id.clone(), what };
        let ctx = self.ctx.clone();
        end_of(async move { ctx.execute_local_activity(AskHost, ask, options).await })
    }

    /// Waits until a signal came or jobs ended; gives the ends, in the order the jobs were begun.
    async fn news(&mut self) -> Vec<(Job, End)> {
        let patient =
            WaitConditionOptions::builder().cancellation_token(WorkflowCancellationToken::new()).build();
        let ctx = self.ctx.clone();
        let mut woken =
            Box::pin(ctx.wait_condition_with_options(|state| state.rung || !state.mail.is_empty(), patient));
        let jobs = &mut self.jobs;
        std::future::poll_fn(move |context| {
            let ends = take_ends(jobs, context);
            let woken = woken.as_mut().poll(context).is_ready();
            if woken || !ends.is_empty() { Poll::Ready(ends) } else { Poll::Pending }
        })
        .await
    }
}

/// Polls every job, always all of them in one order: what happens must not depend on who is woken first.
fn take_ends(jobs: &mut Vec<UnderWay>, context: &mut Context<'_>) -> Vec<(Job, End)> {
    let mut ends = Vec::new();
    jobs.retain_mut(|under_way| match Pin::new(&mut under_way.end).poll(context) {
        Poll::Ready(end) => {
            ends.push((under_way.job.clone(), end));
            false
        }
        Poll::Pending => true,
    });
    ends
}

fn end_of<E: 'static>(
    answer: impl Future<Output = Result<Report, E>> + 'static,
) -> LocalBoxFuture<'static, End> {
    Box::pin(async move { answer.await.map_or(End::Failed, End::Reported) })
}

fn read(input: &RawValue) -> Option<Report> {
    serde_json::from_slice(&input.payloads.first()?.data).ok()
}

fn write(report: &Report) -> RawValue {
    crate::payload::json(report)
}
