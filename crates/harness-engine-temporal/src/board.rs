//! What the Temporal workflow of a task does next. Pure: reports and ends of jobs go in, what to begin and what to stop
//! comes out. It looks at levels: whatever the newest report names is to be under way, whatever it does not name is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use harness_model::{ActivityId, TimerId, Timestamp};

use crate::protocol::{Announced, Handover, Report};

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Something that is to be under way, or is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    /// An execution of an activity.
    Run(ActivityId),
    /// A signal to another workflow.
    Send(ActivityId),
    /// Waiting for a timer.
    Sleep(TimerId),
    /// An order to record that an execution is lost.
    Lose(ActivityId),
    /// An order to fire the timers that are due.
    Fire,
    /// A question for what is left to do.
    Look,
}

/// How a job begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The execution of an activity with this number.
    Run(Announced, u32),
    /// An order, or a signal to another workflow.
    Order,
    /// An order to fire timers, once the first of them is due.
    Fire(Timestamp),
    /// A wait: for a timer, or before a job that did not work is tried again.
    Wait(Duration),
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the news that came with it.
    Reported(Report),
    /// A wait is over.
    Waited,
    /// Without news.
    Failed,
}

/// What to do next, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) stop: Vec<Job>,
    pub(crate) begin: Vec<(Job, Begin)>,
}

/// What is known and what is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    known: Option<Report>,
    under_way: BTreeMap<Job, State>,
    /// Orders that have to be carried out, whatever the report says.
    orders: BTreeSet<Job>,
    /// Failures in a row.
    failures: BTreeMap<Job, u32>,
    /// Jobs that have waited after a failure.
    rested: BTreeSet<Job>,
    /// Executions of announced activities so far.
    attempts: BTreeMap<ActivityId, u32>,
    /// What was known when the question that is under way was asked.
    asked_at: u64,
    /// Whether no execution is to begin.
    held: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Under way, begun while this process was the only one, if there is only one at a time.
    Begun(Option<String>),
    /// Under way until then.
    Until(Timestamp),
    /// Waiting before another try.
    Resting,
}

impl Board {
    /// What is known.
    pub(crate) fn known(&self) -> Option<&Report> {
        self.known.as_ref()
    }

    /// Goes on from where another board was.
    pub(crate) fn resume(&mut self, handover: Handover) {
        let Handover { report, attempts, failures } = handover;
        if report.aside.is_some() {
            return;
        }
        self.attempts = attempts;
        self.failures = failures.into_iter().map(|(id, count)| (Job::Run(id), count)).collect();
        self.learn(report);
    }

    /// All that another board needs to go on from here, while this one is quiet.
    pub(crate) fn handover(&self) -> Handover {
        let failures = self.failures.iter().filter_map(|(job, count)| match job {
            Job::Run(id) => Some((id.clone(), *count)),
            Job::Send(_) | Job::Sleep(_) | Job::Lose(_) | Job::Fire | Job::Look => None,
        });
        Handover {
            report: self.known.clone().unwrap_or_default(),
            attempts: self.attempts.clone(),
            failures: failures.collect(),
        }
    }

    /// Whether executions may begin. Without new ones the board is quiet sooner or later.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Takes a report. One of an earlier position is old news.
    pub(crate) fn learn(&mut self, report: Report) {
        if self.known.as_ref().is_none_or(|known| report.seq >= known.seq) {
            self.attempts.retain(|id, _| report.activities.iter().any(|activity| activity.id == *id));
            self.known = Some(report);
        }
    }

    /// Somebody asks to look again.
    pub(crate) fn look(&mut self) {
        self.orders.insert(Job::Look);
    }

    /// Whether the workflow has ended and nothing is left.
    pub(crate) fn is_finished(&self) -> bool {
        let done = |report: &Report| report.closed && report.activities.is_empty();
        self.known.as_ref().is_some_and(done) && self.under_way.is_empty() && self.orders.is_empty()
    }

    /// Whether a fresh run could go on from what is known alone.
    pub(crate) fn is_quiet(&self) -> bool {
        let waits = |state: &State| !matches!(state, State::Begun(_));
        self.known.is_some() && self.orders.is_empty() && self.under_way.values().all(waits)
    }

    /// A job has ended.
    pub(crate) fn ended(&mut self, job: &Job, end: End) {
        let Some(state) = self.under_way.remove(job) else { return };
        match end {
            End::Waited if state == State::Resting => {
                self.rested.insert(job.clone());
            }
            End::Waited => {}
            End::Reported(Report { aside: Some(_), .. }) | End::Failed => self.failed(job),
            End::Reported(report) => {
                if *job == Job::Look && report.seq < self.asked_at {
                    // The store knows less than what was known before it was asked: that was never true, or the store
                    // is an older one.
                    self.known = None;
                }
                let changed = self.known.as_ref().is_none_or(|known| report.seq > known.seq);
                self.learn(report);
                self.orders.remove(job);
                // A job that the report still asks for has not done what it should.
                if changed || !self.is_asked_for(job) {
                    self.failures.remove(job);
                } else {
                    self.count_failure(job);
                }
            }
        }
    }

    fn failed(&mut self, job: &Job) {
        self.count_failure(job);
        if let Job::Run(id) = job
            && self.is_asked_for(job)
        {
            self.orders.insert(Job::Lose(id.clone()));
        }
    }

    fn count_failure(&mut self, job: &Job) {
        let failures = self.failures.entry(job.clone()).or_default();
        *failures = failures.saturating_add(1);
    }

    fn is_asked_for(&self, job: &Job) -> bool {
        match job {
            Job::Run(id) | Job::Send(id) => self.announced(id).is_some(),
            Job::Fire => true,
            Job::Sleep(_) | Job::Lose(_) | Job::Look => false,
        }
    }

    fn announced(&self, id: &ActivityId) -> Option<&Announced> {
        self.known.as_ref()?.activities.iter().find(|activity| activity.id == *id)
    }

    /// What to do now. What it names as begun counts as under way from here on.
    pub(crate) fn plan(&mut self, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        let Some(known) = self.known.clone() else {
            self.look();
            self.begin_orders(&mut plan);
            return plan;
        };
        self.stop(&known, &mut plan);
        self.begin_orders(&mut plan);
        for activity in &known.activities {
            self.begin_activity(activity, &known, &mut plan);
        }
        if !known.closed {
            self.begin_timers(&known, now, &mut plan);
        }
        let settled = |job: &Job| match job {
            Job::Run(id) | Job::Send(id) => known.activities.iter().any(|activity| activity.id == *id),
            Job::Sleep(_) | Job::Lose(_) | Job::Fire | Job::Look => true,
        };
        self.failures.retain(|job, _| settled(job));
        self.rested.retain(settled);
        plan
    }

    /// Stops what the report does not ask for. An execution that a process before this one began is lost.
    fn stop(&mut self, known: &Report, plan: &mut Plan) {
        let mut lost = Vec::new();
        self.under_way.retain(|job, state| {
            let goes_on = match job {
                Job::Run(id) => {
                    let wanted = known.activities.iter().any(|activity| activity.id == *id);
                    let here = *state == State::Resting || *state == State::Begun(known.epoch.clone());
                    if wanted && !here {
                        lost.push(id.clone());
                    }
                    wanted && here
                }
                Job::Sleep(id) => {
                    known.timers.iter().any(|timer| timer.id == *id && *state == State::Until(timer.due))
                }
                Job::Send(_) | Job::Lose(_) | Job::Fire | Job::Look => true,
            };
            if !goes_on {
                plan.stop.push(job.clone());
            }
            goes_on
        });
        self.orders.extend(lost.into_iter().map(Job::Lose));
    }

    fn begin_orders(&mut self, plan: &mut Plan) {
        for job in self.orders.clone() {
            self.begin(job, Begin::Order, State::Begun(None), plan);
        }
    }

    fn begin_activity(&mut self, activity: &Announced, known: &Report, plan: &mut Plan) {
        if activity.is_signal() {
            return self.begin(Job::Send(activity.id.clone()), Begin::Order, State::Begun(None), plan);
        }
        if self.held || self.orders.contains(&Job::Lose(activity.id.clone())) {
            return;
        }
        let attempt = self.attempts.get(&activity.id).copied().unwrap_or_default().saturating_add(1);
        let begin = Begin::Run(activity.clone(), attempt);
        self.begin(Job::Run(activity.id.clone()), begin, State::Begun(known.epoch.clone()), plan);
    }

    fn begin_timers(&mut self, known: &Report, now: Timestamp, plan: &mut Plan) {
        for timer in &known.timers {
            if timer.due > now {
                let begin = Begin::Wait(timer.due.since(now));
                self.begin(Job::Sleep(timer.id.clone()), begin, State::Until(timer.due), plan);
            } else {
                self.begin(Job::Fire, Begin::Fire(timer.due), State::Begun(None), plan);
            }
        }
    }

    /// Begins a job, or the wait before it, unless one of the two is under way.
    fn begin(&mut self, job: Job, begin: Begin, state: State, plan: &mut Plan) {
        if self.under_way.contains_key(&job) {
            return;
        }
        let failures = self.failures.get(&job).copied().unwrap_or_default();
        // A worker that dies is no reason to wait; one execution after the other that goes wrong is.
        let patience = u32::from(matches!(job, Job::Run(_)));
        if failures > patience && !self.rested.remove(&job) {
            let wait =
                PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(failures - patience - 1)).min(PAUSE_MAX);
            self.under_way.insert(job.clone(), State::Resting);
            return plan.begin.push((job, Begin::Wait(wait)));
        }
        if job == Job::Look {
            self.asked_at = self.known.as_ref().map_or(0, |known| known.seq);
        }
        if let Begin::Run(activity, attempt) = &begin {
            self.attempts.insert(activity.id.clone(), *attempt);
        }
        self.under_way.insert(job.clone(), state);
        plan.begin.push((job, begin));
    }
}

#[cfg(test)]
mod tests;
