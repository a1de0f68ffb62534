//! Streams of a task's log: what comes first, what follows, and where they end.

use std::sync::Arc;

use a2a::StreamResponse;
use futures::{StreamExt, stream};
use harness_model::{Artifact, ContextId, LogEntry, TaskEvent, TaskId, TaskSnapshot, TaskState};
use harness_ports::{LogStream, TaskFields};
use tokio_util::sync::CancellationToken;

use super::{Events, Inner, send::Receipt};
use crate::{
    A2aError,
    render::{Artifacts, TaskIds},
};

/// One stream. It holds a place in the log and nothing else, so a slow reader costs nothing.
pub(super) struct Feed {
    inner: Arc<Inner>,
    task_id: TaskId,
    log: LogStream,
    stop: CancellationToken,
    /// Known once a record was read.
    context_id: Option<ContextId>,
    opening: Opening,
    /// Entries up to here are in a picture that was sent; they are not sent again.
    covered: Option<u64>,
    ends: Ends,
    /// Whether the picture shows the end already.
    ends_with_picture: bool,
    done: bool,
}

/// What a stream sends before the entries.
#[derive(Default)]
enum Opening {
    /// Nothing: the entries speak for themselves.
    #[default]
    Nothing,
    /// The task as it is.
    Picture(Box<TaskSnapshot>),
    /// The task as the first entry after `cursor` makes it: a picture from before a message never shows the end of the
    /// turn before, and skips nothing of the turn that the message begins.
    PictureAfter { before: Box<TaskSnapshot>, cursor: u64 },
}

/// Which status ends a stream, among those that end a turn.
#[derive(Clone, Copy)]
enum Ends {
    /// The first one.
    First,
    /// The first one that is newer than `last`, or the one that was current when the stream began.
    CurrentOrAfter { current: u64, last: u64 },
}

impl Feed {
    /// The consequences of a message, up to the end of the turn. A new task is told from its creation on, whatever
    /// has happened meanwhile.
    pub(super) fn of_turn(inner: &Arc<Inner>, receipt: Receipt, stop: CancellationToken) -> Self {
        let (task_id, last) = (receipt.task_id, receipt.before.as_ref().map(|before| before.last_seq));
        match (receipt.cursor, receipt.before) {
            (Some(cursor), Some(before)) if before.last_seq <= cursor => {
                Self::new(inner, task_id, last, stop, Opening::PictureAfter { before, cursor })
            }
            // A repeated message: what came of it so far is in the picture.
            (Some(cursor), Some(before)) => {
                let ended = before.record.status.state.ends_turn() && before.status_seq > cursor;
                let mut feed = Self::new(inner, task_id, last, stop, Opening::Picture(before));
                feed.ends_with_picture = ended;
                feed
            }
            (cursor, _) => Self::new(inner, task_id, cursor, stop, Opening::Nothing),
        }
    }

    /// The task as it is, then what follows.
    pub(super) fn of_task(inner: &Arc<Inner>, snapshot: TaskSnapshot, stop: CancellationToken) -> Self {
        let (task_id, last) = (snapshot.record.task_id.clone(), snapshot.last_seq);
        Self::new(inner, task_id, Some(last), stop, Opening::Picture(Box::new(snapshot)))
    }

    /// What follows `after`. Old ends of turns are passed over; the current one, if it was missed, ends the stream.
    pub(super) fn resumed(
        inner: &Arc<Inner>,
        snapshot: &TaskSnapshot,
        after: u64,
        stop: CancellationToken,
    ) -> Self {
        let record = &snapshot.record;
        let mut feed = Self::new(inner, record.task_id.clone(), Some(after), stop, Opening::Nothing);
        feed.context_id = Some(record.context_id.clone());
        feed.ends = Ends::CurrentOrAfter { current: snapshot.status_seq, last: snapshot.last_seq };
        feed.done = record.status.state.is_terminal() && after >= snapshot.status_seq;
        feed
    }

    fn new(
        inner: &Arc<Inner>,
        task_id: TaskId,
        after: Option<u64>,
        stop: CancellationToken,
        opening: Opening,
    ) -> Self {
        Self {
            log: inner.store.follow(&task_id, after),
            inner: Arc::clone(inner),
            task_id,
            stop,
            context_id: None,
            opening,
            covered: None,
            ends: Ends::First,
            ends_with_picture: false,
            done: false,
        }
    }

    pub(super) fn into_events(self) -> Events {
        stream::unfold(self, |mut feed| async move {
            let item = feed.next().await?;
            feed.done |= item.is_err();
            Some((item, feed))
        })
        .boxed()
    }

    /// The next event; `None` when the stream ends: after the turn, or when the server stops.
    async fn next(&mut self) -> Option<Result<(u64, StreamResponse), A2aError>> {
        if self.done {
            return None;
        }
        self.try_next().await.transpose()
    }

    async fn try_next(&mut self) -> Result<Option<(u64, StreamResponse)>, A2aError> {
        if let Opening::Picture(_) = &self.opening
            && let Opening::Picture(snapshot) = std::mem::take(&mut self.opening)
        {
            self.done = self.ends_with_picture;
            return self.picture(&snapshot).await.map(Some);
        }
        loop {
            let Some(entry) = self.entry().await? else { return Ok(None) };
            if let Some(event) = self.event(&entry).await? {
                return Ok(Some(event));
            }
        }
    }

    async fn entry(&mut self) -> Result<Option<Arc<LogEntry>>, A2aError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(None),
            next = self.log.next() => next.transpose().map_err(A2aError::from),
        }
    }

    /// What to send for an entry; `None` for those that a picture covers.
    async fn event(&mut self, entry: &LogEntry) -> Result<Option<(u64, StreamResponse)>, A2aError> {
        if let Opening::PictureAfter { mut before, cursor } = std::mem::take(&mut self.opening) {
            advance(&mut before, entry);
            if entry.seq <= cursor {
                self.opening = Opening::PictureAfter { before, cursor };
                return Ok(None);
            }
            self.done = before.record.status.state.ends_turn() && before.status_seq > cursor;
            return self.picture(&before).await.map(Some);
        }
        if self.covered.is_some_and(|covered| entry.seq <= covered) {
            return Ok(None);
        }
        let event = match &entry.event {
            TaskEvent::TaskCreated => {
                let snapshot = self.snapshot(TaskFields::BARE).await?;
                StreamResponse::Task(self.inner.renderer.task_at_creation(&snapshot, entry.at).await?)
            }
            TaskEvent::StatusChanged(status) => {
                let context = self.context().await?;
                self.done = self.ends.with(entry.seq, status.state);
                self.inner.renderer.status_update(self.ids(&context), entry, status).await?
            }
            TaskEvent::ArtifactChanged(change) => {
                let context = self.context().await?;
                self.inner.renderer.artifact_update(self.ids(&context), change).await?
            }
        };
        Ok(Some((entry.seq, event)))
    }

    async fn picture(&mut self, snapshot: &TaskSnapshot) -> Result<(u64, StreamResponse), A2aError> {
        self.context_id = Some(snapshot.record.context_id.clone());
        self.covered = Some(snapshot.last_seq);
        let task = self.inner.renderer.task(snapshot, Artifacts::WhenAny).await?;
        Ok((snapshot.last_seq, StreamResponse::Task(task)))
    }

    async fn context(&mut self) -> Result<ContextId, A2aError> {
        match &self.context_id {
            Some(id) => Ok(id.clone()),
            None => Ok(self.snapshot(TaskFields::BARE).await?.record.context_id),
        }
    }

    async fn snapshot(&mut self, fields: TaskFields) -> Result<TaskSnapshot, A2aError> {
        let found = self.inner.store.task(&self.task_id, fields).await?;
        let snapshot = found.ok_or_else(|| A2aError::internal("a logged task has no record"))?;
        self.context_id = Some(snapshot.record.context_id.clone());
        Ok(snapshot)
    }

    fn ids<'a>(&'a self, context: &'a ContextId) -> TaskIds<'a> {
        TaskIds { task: &self.task_id, context }
    }
}

/// The snapshot with one more entry in it. The log does not say what was added to the history.
fn advance(snapshot: &mut TaskSnapshot, entry: &LogEntry) {
    match &entry.event {
        TaskEvent::TaskCreated => {}
        TaskEvent::StatusChanged(status) => {
            snapshot.record.status = status.clone();
            snapshot.record.status_at = entry.at;
            snapshot.status_seq = entry.seq;
        }
        TaskEvent::ArtifactChanged(change) => Artifact::fold(&mut snapshot.artifacts, change.clone()),
    }
    snapshot.last_seq = entry.seq;
}

impl Ends {
    fn with(self, seq: u64, state: TaskState) -> bool {
        let counts = match self {
            Self::First => true,
            Self::CurrentOrAfter { current, last } => seq == current || seq > last,
        };
        counts && state.ends_turn()
    }
}
