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
use serde::de::DeserializeOwned;
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
    board::{Begin, Board, End, Job, Plan},
    labels,
    protocol::{Ask, Execute, Labels, Order, Report},
};

/// Events of a run after which a fresh one takes over, when neither the server nor a report says so before.
const RUN_EVENTS_MAX: u32 = 4_000;
/// After this many times as many, executions do not begin any more until the fresh run has taken over.
const PATIENCE: u32 = 2;
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
        if let Some(handover) = read(&input) {
            board.resume(handover);
        }
        let (prefix, heartbeat) = ctx.state(|state| (state.prefix.clone(), state.heartbeat));
        let task_id = ctx.workflow_id().strip_prefix(prefix.as_str()).unwrap_or(ctx.workflow_id()).to_owned();
        let mut driver = Run {
            ctx: ctx.clone(),
            task_id: WorkflowId::new(task_id),
            heartbeat,
            jobs: Vec::new(),
            labels: None,
        };
        loop {
            driver.read_mail(&mut board);
            driver.show(&board);
            if !board.is_finished() {
                let age = driver.age(&board);
                if age >= Age::Old && board.is_quiet() {
                    let handover = crate::payload::json(&board.handover());
                    ctx.continue_as_new(handover, ContinueAsNewOptions::default())?;
                }
                board.hold(age >= Age::TooOld);
                driver.follow(board.plan(driver.now()));
            }
            if board.is_finished() {
                return Ok(());
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
    /// What the search attributes say.
    labels: Option<Labels>,
}

/// How long the history of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Young,
    /// A fresh run is to take over when it can.
    Old,
    /// It has to.
    TooOld,
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
    }

    /// Shows what is known, to queries and in the search attributes.
    fn show(&mut self, board: &Board) {
        let Some(known) = board.known() else { return };
        if known.labels.is_some() && known.labels != self.labels {
            self.labels.clone_from(&known.labels);
            self.ctx.upsert_search_attributes(known.labels.iter().flat_map(labels::updates));
        }
        self.ctx.state_mut(|state| state.shown.clone_from(known));
    }

    fn age(&self, board: &Board) -> Age {
        let length = self.ctx.history_length();
        let limit = board.known().and_then(|known| known.run_events_max).unwrap_or(RUN_EVENTS_MAX);
        if length > limit.saturating_mul(PATIENCE) {
            Age::TooOld
        } else if length > limit || self.ctx.continue_as_new_suggested() {
            Age::Old
        } else {
            Age::Young
        }
    }

    fn now(&self) -> Timestamp {
        let time = self.ctx.workflow_time().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let millis = time.map_or(0, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        Timestamp::from_millis(millis)
    }

    fn follow(&mut self, plan: Plan) {
        for job in plan.stop {
            self.stop(&job);
        }
        for (job, begin) in plan.begin {
            self.begin(job, begin);
        }
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
            Begin::Run(activity, attempt) if activity.quick => {
                self.ask(Order::Run(activity.id, attempt), token.clone())
            }
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
                    epoch: self.ctx.state(|state| state.shown.epoch.clone()),
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

fn read<T: DeserializeOwned>(input: &RawValue) -> Option<T> {
    serde_json::from_slice(&input.payloads.first()?.data).ok()
}

#[cfg(test)]
mod tests;
