//! Streams that survive broken connections and restarts of the agent.

use std::time::Duration;

use a2a::StreamResponse;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::{AgentClient, ClientError, EventStream, StreamItem};
use crate::{ErrorKind, render::domain_state};

/// How hard a stream tries to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumePolicy {
    /// Tries in a row without an event in between.
    pub attempts_max: u32,
    /// Wait before the first of them; it doubles.
    pub first: Duration,
    /// Longest wait.
    pub longest: Duration,
}

impl Default for ResumePolicy {
    /// Eight tries over about half a minute.
    fn default() -> Self {
        Self { attempts_max: 8, first: Duration::from_millis(200), longest: Duration::from_secs(10) }
    }
}

impl EventStream {
    /// The same stream, taken up where it broke: on a broken or silent connection, or when it ends before the turn
    /// does, the client subscribes to the task again from the last event on. No event is seen twice.
    ///
    /// Streams of agents that do not number their events stay as they are.
    pub fn resuming(self, client: &AgentClient, policy: ResumePolicy) -> Self {
        let resuming = Resuming {
            client: client.clone(),
            policy,
            inner: self.boxed(),
            task_id: None,
            last: None,
            turn_ended: false,
            failures: 0,
            done: false,
        };
        let items = stream::unfold(resuming, |mut resuming| async move {
            if resuming.done {
                return None;
            }
            let item = resuming.next().await.transpose()?;
            resuming.done = item.is_err();
            Some((item, resuming))
        });
        Self::of_items(items.boxed())
    }
}

struct Resuming {
    client: AgentClient,
    policy: ResumePolicy,
    inner: BoxStream<'static, Result<StreamItem, ClientError>>,
    task_id: Option<String>,
    /// Number of the newest event.
    last: Option<u64>,
    /// Whether the newest event is one that ends a turn.
    turn_ended: bool,
    failures: u32,
    done: bool,
}

impl Resuming {
    async fn next(&mut self) -> Result<Option<StreamItem>, ClientError> {
        loop {
            let broken = match self.inner.next().await {
                Some(Ok(item)) => match self.fresh(item) {
                    Some(item) => return Ok(Some(item)),
                    None => continue,
                },
                None if self.turn_ended || self.last.is_none() => return Ok(None),
                None => ClientError::unreachable("the stream ended before the turn did"),
                Some(Err(error)) => error,
            };
            self.reopen(broken).await?;
        }
    }

    /// The item, unless it was seen.
    fn fresh(&mut self, item: StreamItem) -> Option<StreamItem> {
        if let (Some(seq), Some(last)) = (item.seq, self.last)
            && seq <= last
        {
            return None;
        }
        self.failures = 0;
        self.last = item.seq;
        let (task_id, state) = match &item.event {
            StreamResponse::Task(task) => (Some(&task.id), Some(&task.status.state)),
            StreamResponse::StatusUpdate(update) => (Some(&update.task_id), Some(&update.status.state)),
            StreamResponse::ArtifactUpdate(update) => (Some(&update.task_id), None),
            StreamResponse::Message(_) => (None, None),
        };
        self.turn_ended = match (&item.event, state) {
            (StreamResponse::Message(_), _) => true,
            (_, state) => state.and_then(domain_state).is_some_and(harness_model::TaskState::ends_turn),
        };
        if let Some(task_id) = task_id {
            self.task_id = Some(task_id.clone());
        }
        Some(item)
    }

    /// Opens the stream again. Errors: `broken`, or what stands in the way, when there is no use in trying on.
    async fn reopen(&mut self, broken: ClientError) -> Result<(), ClientError> {
        let (Some(task_id), Some(last)) = (self.task_id.clone(), self.last) else { return Err(broken) };
        let mut error = broken;
        while may_pass(&error) && self.failures < self.policy.attempts_max {
            let doubled = 2_u32.saturating_pow(self.failures);
            self.failures += 1;
            tokio::time::sleep(self.policy.first.saturating_mul(doubled).min(self.policy.longest)).await;
            match self.client.subscribe(&task_id, Some(last)).await {
                Ok(stream) => {
                    self.inner = stream.boxed();
                    return Ok(());
                }
                Err(again) => error = again,
            }
        }
        Err(error)
    }
}

/// Whether the same request may succeed in a while.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable(_) | ClientError::TimedOut { .. } => true,
        ClientError::Status { status, .. } => matches!(status, 429 | 502..=504),
        ClientError::Refused { kind, .. } => *kind == Some(ErrorKind::Unavailable),
        ClientError::TooLarge { .. }
        | ClientError::InvalidResponse(_)
        | ClientError::InvalidRequest(_)
        | ClientError::NoInterface
        | ClientError::UnsupportedExtension { .. }
        | ClientError::SecurityRequired
        | ClientError::Forbidden(_) => false,
    }
}
