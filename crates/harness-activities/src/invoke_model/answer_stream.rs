//! The stream of one model call: its words go to the task's log while it speaks.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, future::BoxFuture};
use harness_model::{ArtifactChange, ArtifactId, Content, ContentPart, ModelOutput, TaskEvent, TaskId};
use harness_ports::{
    Block, Clock, Committed, ModelError, ModelErrorKind, ModelEvent, ModelStream, Publish, Store, StoreError,
    Write, WriteBatch,
};
use tokio::time::{Instant, sleep_until};

use super::scrubbed_text::{Chunk, ScrubbedText};

/// How long words wait for more of them. A model that is done sooner costs no chunk at all.
const COALESCE: Duration = Duration::from_millis(5);

/// Where the words of one call go.
pub(super) struct AnswerStream<'a> {
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) clock: &'a dyn Clock,
    pub(super) task_id: &'a TaskId,
    pub(super) artifact_id: &'a ArtifactId,
    pub(super) chunk_key: &'a str,
}

/// An answer, and what subscribers have seen of it.
#[derive(Debug)]
pub(super) struct Streamed<'a> {
    pub(super) output: ModelOutput,
    pub(super) text: ScrubbedText<'a>,
}

type Commit = BoxFuture<'static, Result<Committed, StoreError>>;

/// The chunk that is being made durable. At most one is; meanwhile words collect.
struct InFlight {
    chunk: Chunk,
    commit: Commit,
}

impl AnswerStream<'_> {
    /// Reads the stream to its end. When this returns, no chunk is in flight any more.
    pub(super) async fn run<'t>(
        &self,
        mut stream: ModelStream,
        mut text: ScrubbedText<'t>,
    ) -> Result<Streamed<'t>, ModelError> {
        let mut in_flight: Option<InFlight> = None;
        let mut due: Option<Instant> = None;
        let mut published = 0_u64;
        let mut broken = false;
        let ended = loop {
            tokio::select! {
                biased;
                committed = commit_of(&mut in_flight) => {
                    broken |= self.settle(&mut text, in_flight.take(), committed);
                }
                event = stream.next() => match event {
                    Some(Ok(ModelEvent::TextDelta(delta))) if delta.is_empty() || broken => {}
                    Some(Ok(ModelEvent::TextDelta(delta))) => {
                        text.push(&delta);
                        due.get_or_insert_with(|| Instant::now() + COALESCE);
                    }
                    Some(Ok(ModelEvent::Done(output))) => break Ok(*output),
                    Some(Err(error)) => break Err(error),
                    None => break Err(cut_short()),
                },
                () = passed(due), if in_flight.is_none() => {
                    due = None;
                    in_flight = text.next_chunk().map(|chunk| self.begin(chunk, published));
                    published += 1;
                }
            }
        };
        if in_flight.is_some() {
            let committed = commit_of(&mut in_flight).await;
            self.settle(&mut text, in_flight.take(), committed);
        }
        ended.map(|output| Streamed { output, text })
    }

    fn begin(&self, chunk: Chunk, number: u64) -> InFlight {
        let block = Block::new(chunk.text.clone());
        let part = ContentPart::text(Content::Block(block.reference.clone()));
        let publish = Publish {
            task_id: self.task_id.clone(),
            key: format!("{}:{number}", self.chunk_key),
            events: vec![TaskEvent::ArtifactChanged(ArtifactChange {
                artifact_id: self.artifact_id.clone(),
                name: Some(self.artifact_id.to_string()),
                description: None,
                parts: vec![part],
                append: chunk.append,
                last_chunk: false,
            })],
            record: None,
            history: Vec::new(),
        };
        let task_id = self.task_id.clone();
        let writes = vec![
            Write::RequireTask { task_id: task_id.clone() },
            Write::PutBlock { block, task_id },
            Write::Publish(Box::new(publish)),
        ];
        let commit = self.store.commit(WriteBatch::new(self.clock.now(), writes));
        InFlight { chunk, commit }
    }

    /// Takes note of a commit. Returns whether chunks are given up: the words then come with the end of the answer, if
    /// the store takes that.
    fn settle(
        &self,
        text: &mut ScrubbedText<'_>,
        done: Option<InFlight>,
        committed: Result<Committed, StoreError>,
    ) -> bool {
        match (committed, done) {
            (Ok(_), Some(done)) => {
                text.committed(done.chunk);
                false
            }
            (Ok(_), None) => false,
            (Err(error), _) => {
                tracing::warn!(task_id = %self.task_id, %error, "an answer is not streamed: a chunk was not kept");
                true
            }
        }
    }
}

/// The end of the commit in flight; never, when there is none.
async fn commit_of(in_flight: &mut Option<InFlight>) -> Result<Committed, StoreError> {
    match in_flight {
        Some(in_flight) => (&mut in_flight.commit).await,
        None => std::future::pending().await,
    }
}

async fn passed(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn cut_short() -> ModelError {
    ModelError::new(ModelErrorKind::Retryable { after: None }, "the model's stream ended without an answer")
}
