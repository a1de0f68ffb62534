//! Wakes Temporal workflows: soon after a commit, and again for whatever a process before this one could not send.

mod audit;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use harness_journal::Host;
use harness_model::{TaskId, WorkflowId};
use harness_ports::{Record, RecordKind, StoreError, TaskGroup, Write, WriteBatch};
use temporalio_client::{
    Client, UntypedSignal, UntypedWorkflow, WorkflowIdConflictPolicy, WorkflowIdReusePolicy,
    WorkflowStartOptions,
};
use tokio::sync::Semaphore;

use crate::{
    contact::Contact,
    payload,
    protocol::{WAKE, WORKFLOW},
    reporter::Reporter,
};

/// Wake-ups on their way at once; further ones wait their turn.
const SENDING_MAX: usize = 64;
/// Wake-ups on their way or waiting. What comes on top is left to the sweep, which finds the notes.
const WAITING_MAX: usize = 4_096;
/// Rows read at a time.
const PAGE: usize = 64;
/// How long the server may take for a workflow task before another worker gets it.
const WORKFLOW_TASK_LIMIT: Duration = Duration::from_secs(5);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// A timer that is overdue for this long was forgotten by whoever should have fired it.
const OVERDUE: Duration = Duration::from_secs(20);

/// Where Temporal workflows are.
#[derive(Clone)]
pub(crate) struct Ways {
    pub(crate) client: Client,
    pub(crate) task_queue: String,
    pub(crate) id_prefix: String,
}

/// Sends wake-ups.
pub(crate) struct Wakes {
    pub(crate) host: Arc<Host>,
    pub(crate) ways: Ways,
    reporter: Reporter,
    places: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    failed_in_a_row: AtomicU64,
    pub(crate) contact: Contact,
    /// The senders and the sweeps.
    pub(crate) group: TaskGroup,
}

impl Wakes {
    pub(crate) fn new(host: Arc<Host>, reporter: Reporter, ways: Ways, contact: Contact) -> Arc<Self> {
        let (places, queue) = (Semaphore::new(SENDING_MAX).into(), Semaphore::new(WAITING_MAX).into());
        let (failed_in_a_row, group) = (AtomicU64::new(0), TaskGroup::new());
        Arc::new(Self { host, ways, reporter, places, queue, failed_in_a_row, contact, group })
    }

    /// Wake-ups in a row that could not be sent.
    pub(crate) fn failed_in_a_row(&self) -> u64 {
        self.failed_in_a_row.load(Ordering::Relaxed)
    }

    /// Sends what is due and ends the sweeps, within `grace`.
    pub(crate) async fn stop(&self, grace: Duration) -> bool {
        self.group.shutdown(grace).await
    }

    /// Wakes a workflow in the background and takes its note away. Tries for as long as the process lives.
    pub(crate) fn send_soon(self: &Arc<Self>, workflow_id: &WorkflowId, note: String) {
        let Ok(waiting) = Arc::clone(&self.queue).try_acquire_owned() else { return };
        let (wakes, workflow_id) = (Arc::clone(self), workflow_id.clone());
        self.group.spawn(async move {
            let _waiting = waiting;
            // The semaphore is never closed.
            let Ok(_place) = Arc::clone(&wakes.places).acquire_owned().await else { return };
            let stop = wakes.group.stop_token().clone();
            let mut wait = RETRY_FIRST;
            while let Err(error) = wakes.settle(&workflow_id, &note).await {
                tracing::warn!(%workflow_id, error, "workflow cannot be woken yet");
                if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    // The note stays for the next process.
                    return;
                }
                wait = (wait * 2).min(RETRY_MAX);
            }
        });
    }

    async fn settle(self: &Arc<Self>, workflow_id: &WorkflowId, note: &str) -> Result<(), String> {
        self.wake(workflow_id).await?;
        let write = Write::DeleteRecord { kind: RecordKind::PendingWake, id: note.to_owned() };
        let batch = WriteBatch::new(self.host.clock.now(), vec![write]);
        self.host.store.commit(batch).await.map(drop).map_err(|error| error.to_string())
    }

    /// Wakes a workflow, starting its Temporal workflow if there is none.
    pub(crate) async fn wake(self: &Arc<Self>, workflow_id: &WorkflowId) -> Result<(), String> {
        let report =
            self.reporter.report(&self.host, workflow_id).await.map_err(|error| error.to_string())?;
        let input = payload::json(&report);
        let Ways { client, task_queue, .. } = &self.ways;
        let options = WorkflowStartOptions::new(task_queue.clone(), self.ways.id_of(workflow_id))
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .task_timeout(WORKFLOW_TASK_LIMIT)
            .build();
        let sent = client
            .signal_with_start_workflow(
                UntypedWorkflow::new(WORKFLOW),
                input.clone(),
                UntypedSignal::new(WAKE),
                input,
                options,
            )
            .await;
        match sent {
            Ok(_) => {
                self.failed_in_a_row.store(0, Ordering::Relaxed);
                self.contact.made();
                Ok(())
            }
            Err(error) => {
                self.failed_in_a_row.fetch_add(1, Ordering::Relaxed);
                Err(error.to_string())
            }
        }
    }

    /// Looks from time to time for what nobody has done.
    pub(crate) fn sweep(self: &Arc<Self>, every: Duration) {
        let wakes = Arc::clone(self);
        self.group.spawn(async move {
            let stop = wakes.group.stop_token().clone();
            let work = async {
                let mut known = BTreeSet::new();
                loop {
                    match wakes.wake_forgotten(&known).await {
                        Ok(notes) => known = notes,
                        Err(error) => tracing::warn!(error, "forgotten wake-ups cannot be looked for"),
                    }
                    tokio::time::sleep(every).await;
                }
            };
            let _stopped = stop.run_until_cancelled(work).await;
        });
    }

    /// Wakes the workflows whose notes were there at the last look already, and those with overdue timers. Gives the
    /// notes that are there now.
    async fn wake_forgotten(self: &Arc<Self>, known: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        let mut notes = BTreeSet::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.host.store.records_page(RecordKind::PendingWake, after.as_deref(), PAGE).await;
            let page = page.map_err(|error| error.to_string())?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            let (old, new): (Vec<Record>, Vec<Record>) =
                page.into_iter().partition(|note| known.contains(&note.id));
            notes.extend(new.into_iter().map(|note| note.id));
            let settled = old.iter().map(|note| async { self.settle(&workflow_of(note), &note.id).await });
            join_all(settled).await.into_iter().collect::<Result<(), String>>()?;
        }
        self.wake_overdue().await?;
        Ok(notes)
    }

    async fn wake_overdue(self: &Arc<Self>) -> Result<(), String> {
        let timers =
            self.host.store.next_timers(PAGE).await.map_err(|error: StoreError| error.to_string())?;
        let now = self.host.clock.now();
        let overdue = timers.into_iter().filter(|timer| now.since(timer.due_at) > OVERDUE);
        let overdue: BTreeSet<_> = overdue.map(|timer| timer.workflow_id).collect();
        for workflow_id in overdue {
            self.wake(&workflow_id).await?;
        }
        Ok(())
    }
}

impl Ways {
    /// The Temporal id of a workflow.
    pub(crate) fn id_of(&self, workflow_id: &WorkflowId) -> String {
        format!("{}{workflow_id}", self.id_prefix)
    }
}

fn workflow_of(note: &Record) -> WorkflowId {
    let task_id: &TaskId = &note.task_id;
    WorkflowId::new(task_id.as_str())
}
