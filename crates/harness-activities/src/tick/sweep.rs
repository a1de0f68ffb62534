//! `retention_sweep`: deletes what is past its retention, a bounded number at a time.

use std::time::Duration;

use harness_model::{TaskState, Timestamp};
use harness_ports::{
    DeleteWhen, DeletedRows, OldestTasks, RecordKind, RowKind, StoreError, Write, WriteBatch,
};
use tokio::time::Instant;

use super::TickDeps;

/// Tasks of one read.
const PAGE: usize = 100;
/// Tasks that one tick looks at. Most are deleted; one whose last signals are not delivered yet stays for later.
const TASKS_MAX: usize = 5_000;
/// Records of one commit; writers wait no longer than that takes.
const RECORDS_AT_ONCE: usize = 200;
/// Records of one kind and tick.
const RECORDS_MAX: u64 = 20_000;
/// Nothing more is begun after this time; the next tick goes on.
const BEGIN_UNTIL: Duration = Duration::from_secs(20);

/// Returns what was deleted. Each task goes in a commit of its own, so that nobody who writes waits for long.
pub(super) async fn run(deps: &TickDeps) -> Result<DeletedRows, StoreError> {
    let now = deps.clock.now();
    let until = Instant::now() + BEGIN_UNTIL;
    let mut deleted = DeletedRows::new();
    tasks(deps, earlier(now, deps.retention.tasks), until, &mut deleted).await?;
    for (kind, kept_for) in [
        (RecordKind::InboxAudit, deps.retention.inbox_audit),
        (RecordKind::PushConfig, deps.retention.push_configs),
    ] {
        records(deps, kind, earlier(now, kept_for), until, &mut deleted).await?;
    }
    if !deleted.is_empty() {
        let rows: Vec<String> =
            deleted.iter().map(|(kind, rows)| format!("{}={rows}", kind.name())).collect();
        tracing::info!(rows = rows.join(" "), "deleted what is past its retention");
    }
    Ok(deleted)
}

async fn tasks(
    deps: &TickDeps,
    before: Timestamp,
    until: Instant,
    deleted: &mut DeletedRows,
) -> Result<(), StoreError> {
    let states: Vec<TaskState> = TaskState::ALL.into_iter().filter(|state| state.is_terminal()).collect();
    let mut after = None;
    for _ in 0..TASKS_MAX / PAGE {
        let query = OldestTasks { states: states.clone(), before, after, limit: PAGE };
        let page = deps.store.oldest_tasks(query).await?;
        for task in &page {
            if Instant::now() >= until {
                return Ok(());
            }
            let task_id = task.task_id.clone();
            let write = Write::DeleteTask { task_id, when: DeleteWhen::EndedBefore(before) };
            add(deleted, commit(deps, write).await?);
        }
        if page.len() < PAGE {
            return Ok(());
        }
        after = page.into_iter().next_back();
    }
    Ok(())
}

async fn records(
    deps: &TickDeps,
    kind: RecordKind,
    before: Timestamp,
    until: Instant,
    deleted: &mut DeletedRows,
) -> Result<(), StoreError> {
    let mut total = 0;
    while total < RECORDS_MAX && Instant::now() < until {
        let write = Write::DeleteOldRecords { kind, before, limit: RECORDS_AT_ONCE };
        let rows = commit(deps, write).await?;
        let count = rows.get(&RowKind::Record(kind)).copied().unwrap_or(0);
        add(deleted, rows);
        total += count;
        if count < RECORDS_AT_ONCE as u64 {
            break;
        }
    }
    Ok(())
}

async fn commit(deps: &TickDeps, write: Write) -> Result<DeletedRows, StoreError> {
    Ok(deps.store.commit(WriteBatch::new(deps.clock.now(), vec![write])).await?.deleted)
}

fn add(sum: &mut DeletedRows, rows: DeletedRows) {
    for (kind, rows) in rows {
        *sum.entry(kind).or_default() += rows;
    }
}

fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
