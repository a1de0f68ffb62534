//! `monitor_snapshot`: the picture for operators, kept in the store so that every process can show it.
//!
//! It holds ids, states, times and numbers; nothing that anybody said. Fields are only ever added.

use std::collections::BTreeMap;

use harness_agent::TaskFacts;
use harness_model::{TaskState, Timestamp};
use harness_ports::{OldestTasks, Record, RowKind, StoreError, TaskCursor, TaskFields, Write, WriteBatch};
use serde::Serialize;

use super::{EngineFacts, Tick};

/// Unfinished tasks that the picture shows, those at work first.
const TASKS_MAX: usize = 200;
/// Waiting tasks among which open questions are counted.
const WAITING_MAX: usize = 1_000;
const AT_WORK: [TaskState; 2] = [TaskState::Submitted, TaskState::Working];
const WAITING: [TaskState; 2] = [TaskState::InputRequired, TaskState::AuthRequired];

#[derive(Serialize)]
struct Picture {
    /// When it was taken.
    at: String,
    /// Time to the next one.
    interval_ms: u64,
    /// Unfinished tasks, those at work first, then those that wait; oldest status first.
    tasks: Vec<TaskRow>,
    /// Unfinished tasks that are not listed.
    tasks_omitted: u64,
    /// Tasks that wait for the answer to a question.
    pending_help: u64,
    /// Messages that tasks of the list have not read yet.
    queued_messages: u64,
    /// The task that has waited for a person longest: for an answer, when there is one that does.
    oldest_waiting: Option<OldestWaiting>,
    counts: Counts,
    /// How long the most overdue timer is due; zero when none is.
    timer_lag_ms: u64,
    ticks: Ticks,
    engine: EngineFacts,
    process: Process,
}

#[derive(Clone, Serialize)]
struct TaskRow {
    task_id: String,
    context_id: String,
    state_name: &'static str,
    /// When the task came into this state.
    since: String,
    pending_help: bool,
    sub_state: Option<&'static str>,
    /// Sub-tasks.
    children: usize,
    /// Turns so far; not known of tasks whose workflow another engine keeps.
    turn: Option<u32>,
    /// Messages that are not read yet; known like `turn`.
    mailbox: Option<usize>,
    /// What it does; known like `turn`.
    phase: Option<&'static str>,
}

#[derive(Serialize)]
struct OldestWaiting {
    task_id: String,
    state_name: &'static str,
    since: String,
    waiting_ms: u64,
    pending_help: bool,
}

#[derive(Serialize)]
struct Counts {
    /// Tasks by state; states without any are left out.
    tasks: BTreeMap<&'static str, u64>,
    /// Announced activities: running, or waiting for a place.
    activities: u64,
    timers: u64,
    /// Receivers of push notifications that have not heard everything.
    outbox: Option<u64>,
    /// Records by kind.
    records: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Ticks {
    completed: u64,
    failed: u64,
}

#[derive(Serialize)]
struct Process {
    version: String,
    pid: u32,
    host: String,
    started_at: String,
}

/// Takes the picture and keeps it.
pub(super) async fn run(tick: &Tick) -> Result<(), StoreError> {
    let now = tick.deps.clock.now();
    let picture = take(tick, now).await?;
    let value = serde_json::to_value(picture).map_err(|error| StoreError::Unavailable {
        what: "writing the picture down".to_owned(),
        source: Some(Box::new(error)),
    })?;
    let write = Write::PutRecord(Record::monitor(value));
    tick.deps.store.commit(WriteBatch::new(now, vec![write])).await.map(drop)
}

async fn take(tick: &Tick, now: Timestamp) -> Result<Picture, StoreError> {
    let deps = &tick.deps;
    let census = deps.store.census().await?;
    let at_work = oldest(tick, &AT_WORK, TASKS_MAX).await?;
    let waiting = oldest(tick, &WAITING, WAITING_MAX).await?;
    let mut tasks = Vec::new();
    for cursor in at_work.iter().chain(&waiting).take(TASKS_MAX) {
        tasks.extend(row(tick, cursor, Depth::Workflow).await?);
    }
    let (mut pending_help, mut longest, mut asked) = (0, None, None);
    for cursor in &waiting {
        let Some(row) = row(tick, cursor, Depth::Record).await? else { continue };
        pending_help += u64::from(row.pending_help);
        let entry = || Some((cursor.status_at, row.clone()));
        longest = longest.or_else(entry);
        asked = asked.or_else(|| entry().filter(|(_, row)| row.pending_help));
    }
    let outbox = match &deps.outbox {
        Some(outbox) => Some(outbox.behind().await?),
        None => None,
    };
    let first_timer = deps.store.next_timers(1).await?.into_iter().next();
    let unfinished: u64 =
        census.tasks.iter().filter(|(state, _)| !state.is_terminal()).map(|(_, count)| count).sum();
    Ok(Picture {
        at: now.to_rfc3339(),
        interval_ms: millis(deps.interval),
        tasks_omitted: unfinished.saturating_sub(tasks.len() as u64),
        pending_help,
        queued_messages: tasks.iter().filter_map(|row| row.mailbox).sum::<usize>() as u64,
        tasks,
        oldest_waiting: asked.or(longest).map(|(since, row)| OldestWaiting {
            task_id: row.task_id,
            state_name: row.state_name,
            since: row.since,
            waiting_ms: millis(now.since(since)),
            pending_help: row.pending_help,
        }),
        counts: Counts {
            tasks: census.tasks.iter().map(|(state, count)| (state.name(), *count)).collect(),
            activities: census.activities,
            timers: census.timers,
            outbox,
            records: census
                .records
                .iter()
                .map(|(kind, count)| (RowKind::Record(*kind).name(), *count))
                .collect(),
        },
        timer_lag_ms: first_timer.map_or(0, |timer| millis(now.since(timer.due_at))),
        ticks: Ticks { completed: tick.completed(), failed: tick.failed() },
        engine: deps.engine.look().await?,
        process: Process {
            version: deps.process.version.clone(),
            pid: deps.process.pid,
            host: deps.process.host.clone(),
            started_at: deps.process.started_at.to_rfc3339(),
        },
    })
}

async fn oldest(tick: &Tick, states: &[TaskState], limit: usize) -> Result<Vec<TaskCursor>, StoreError> {
    let before = Timestamp::from_millis(i64::MAX);
    let query = OldestTasks { states: states.to_vec(), before, after: None, limit };
    tick.deps.store.oldest_tasks(query).await
}

/// How much of a task is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Record,
    Workflow,
}

/// A task of the list; `None` when it has gone meanwhile.
async fn row(tick: &Tick, cursor: &TaskCursor, depth: Depth) -> Result<Option<TaskRow>, StoreError> {
    let store = &tick.deps.store;
    let Some(task) = store.task(&cursor.task_id, TaskFields::BARE).await? else { return Ok(None) };
    let facts = match depth {
        Depth::Record => None,
        Depth::Workflow => match store.workflow(&(&cursor.task_id).into()).await? {
            Some(stored) => TaskFacts::of(&stored).unwrap_or_else(|error| {
                tracing::warn!(task_id = %cursor.task_id, %error, "a task is shown without its workflow");
                None
            }),
            None => None,
        },
    };
    let record = task.record;
    Ok(Some(TaskRow {
        task_id: record.task_id.to_string(),
        context_id: record.context_id.to_string(),
        state_name: record.status.state.name(),
        since: record.status_at.to_rfc3339(),
        pending_help: record.status.help.is_some(),
        sub_state: record.status.sub_state.map(harness_model::SubState::name),
        children: record.extension.sub_tasks.len(),
        turn: facts.map(|facts| facts.turn),
        mailbox: facts.map(|facts| facts.mailbox),
        phase: facts.map(|facts| facts.phase),
    }))
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
