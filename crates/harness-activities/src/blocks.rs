//! Reading and keeping content: blocks in, blocks and records out, one commit per activity.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use harness_model::{BlockRef, Content, TaskId};
use harness_ports::{ActivityFailure, Block, Clock, Record, Store, Write, WriteBatch};
use serde::{Serialize, de::DeserializeOwned};

use crate::failure;

/// Blocks that one activity reads at the same time.
const READS_AT_ONCE: usize = 16;

/// The bytes of a block that recorded data refers to.
pub(crate) async fn bytes(store: &dyn Store, block: &BlockRef) -> Result<Bytes, ActivityFailure> {
    match store.block(&block.id).await {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(failure::state_invalid(&format!("block {} is missing", block.id))),
        Err(error) => Err(failure::of_store(&error)),
    }
}

/// A stored JSON value.
pub(crate) async fn json<T: DeserializeOwned>(
    store: &dyn Store,
    block: &BlockRef,
) -> Result<T, ActivityFailure> {
    let bytes = bytes(store, block).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| failure::state_invalid(&format!("block {} is not readable: {error}", block.id)))
}

/// A stored text.
pub(crate) async fn text(store: &dyn Store, block: &BlockRef) -> Result<String, ActivityFailure> {
    let bytes = bytes(store, block).await?;
    String::from_utf8(bytes.into())
        .map_err(|_| failure::state_invalid(&format!("block {} is not text", block.id)))
}

/// A text, wherever it is.
pub(crate) async fn content(store: &dyn Store, content: &Content) -> Result<String, ActivityFailure> {
    match content {
        Content::Inline(text) => Ok(text.clone()),
        Content::Block(block) => text(store, block).await,
    }
}

/// Runs reads side by side, a bounded number at a time; results in the order of the reads.
pub(crate) async fn all<T>(
    reads: Vec<impl Future<Output = Result<T, ActivityFailure>>>,
) -> Result<Vec<T>, ActivityFailure> {
    stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await
}

/// What an activity keeps.
#[derive(Debug)]
pub(crate) struct Keep {
    task_id: TaskId,
    writes: Vec<Write>,
}

impl Keep {
    /// Nothing yet, for this task.
    pub(crate) fn of(task_id: &TaskId) -> Self {
        Self { task_id: task_id.clone(), writes: Vec::new() }
    }

    /// Keeps bytes.
    pub(crate) fn bytes(&mut self, bytes: impl Into<Bytes>) -> BlockRef {
        let block = Block::new(bytes);
        let reference = block.reference.clone();
        self.block(block);
        reference
    }

    /// Keeps a block, once: an answer that was not streamed is its own tail.
    pub(crate) fn block(&mut self, block: Block) {
        let same = |write: &Write| matches!(write, Write::PutBlock { block: known, .. } if known.reference == block.reference);
        if !self.writes.iter().any(same) {
            self.writes.push(Write::PutBlock { block, task_id: self.task_id.clone() });
        }
    }

    /// Keeps a value as JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<BlockRef, ActivityFailure> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| failure::state_invalid(&format!("a value is not JSON: {error}")))?;
        Ok(self.bytes(bytes))
    }

    /// Keeps a record.
    pub(crate) fn record(&mut self, record: Record) {
        self.writes.push(Write::PutRecord(record));
    }

    /// Makes all of it durable at once, unless the task is gone: nothing of it comes back.
    pub(crate) async fn commit(self, store: &dyn Store, clock: &dyn Clock) -> Result<(), ActivityFailure> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let mut writes = vec![Write::RequireTask { task_id: self.task_id }];
        writes.extend(self.writes);
        let batch = WriteBatch::new(clock.now(), writes);
        store.commit(batch).await.map(drop).map_err(|error| failure::of_store(&error))
    }
}
