//! Whether the Temporal server answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeNamespaceRequest;
use tokio::time::Instant;

use crate::wakes::Wakes;

/// Questions that may stay without an answer before that counts as an outage.
const MISSED_MAX: u32 = 3;
/// How long the server may take for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// When the server answered last.
#[derive(Debug)]
pub(crate) struct Contact {
    begun: Instant,
    /// Milliseconds since `begun`.
    last: AtomicU64,
    outage_after: Duration,
}

impl Contact {
    /// The server has just answered, and is asked this often.
    pub(crate) fn new(every: Duration) -> Self {
        Self { begun: Instant::now(), last: AtomicU64::new(0), outage_after: every * MISSED_MAX }
    }

    pub(crate) fn made(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Ordering::Relaxed);
    }

    /// For how long it has not answered, when that is too long.
    pub(crate) fn lost_for(&self) -> Option<Duration> {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        Some(self.begun.elapsed().saturating_sub(last)).filter(|silence| *silence > self.outage_after)
    }
}

impl Wakes {
    /// Asks the server for the namespace from time to time.
    pub(crate) fn keep_in_touch(self: &Arc<Self>, every: Duration) {
        let wakes = Arc::clone(self);
        self.group.spawn(async move {
            let stop = wakes.group.stop_token().clone();
            let asking = async {
                let mut known_lost = false;
                loop {
                    tokio::time::sleep(every).await;
                    if wakes.asked().await {
                        wakes.contact.made();
                    }
                    let is_lost = wakes.contact.lost_for().is_some();
                    if is_lost && !known_lost {
                        tracing::warn!("Temporal does not answer; messages are taken, and wait");
                    } else if known_lost && !is_lost {
                        tracing::info!("Temporal answers again");
                    }
                    known_lost = is_lost;
                }
            };
            let _stopped = stop.run_until_cancelled(asking).await;
        });
    }

    async fn asked(&self) -> bool {
        let client = &self.ways.client;
        let mut service = client.connection().workflow_service();
        let namespace = client.options().namespace.clone();
        let question = DescribeNamespaceRequest { namespace, ..DescribeNamespaceRequest::default() };
        let answer = service.describe_namespace(question.into_request());
        matches!(tokio::time::timeout(ANSWER_LIMIT, answer).await, Ok(Ok(_)))
    }
}
