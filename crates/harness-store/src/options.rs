//! How a store is opened.

use std::{fmt, path::PathBuf, sync::Arc};

/// Bytes of the block cache when nothing else is asked for.
pub(crate) const BLOCK_CACHE_BYTES: usize = 16 * 1024 * 1024;
/// Reader connections when nothing else is asked for.
const READERS: usize = 3;

/// Called by the writer around each commit; see [`StoreOptions::on_commit`].
pub type CommitHook = Arc<dyn Fn(CommitPhase, u64) + Send + Sync>;

/// How a store is opened.
#[derive(Clone)]
pub struct StoreOptions {
    /// The database file; created with mode 0600 when missing. Its directory must exist.
    pub path: PathBuf,
    /// Bytes of blocks kept in memory. Zero keeps none.
    pub block_cache_bytes: usize,
    /// Connections that read at once; at least 1. They are opened when first needed.
    pub readers: usize,
    /// Called on the writer's thread right before and right after each commit, with the number of the commit since the
    /// store was opened, from 1. For crash tests: while it is set every batch is a commit of its own, so that the
    /// number of commits depends on the batches alone. Batches that fail their conditions are not counted.
    pub on_commit: Option<CommitHook>,
}

impl StoreOptions {
    /// The options of a production store at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), block_cache_bytes: BLOCK_CACHE_BYTES, readers: READERS, on_commit: None }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("path", &self.path)
            .field("block_cache_bytes", &self.block_cache_bytes)
            .field("readers", &self.readers)
            .field("on_commit", &self.on_commit.is_some())
            .finish()
    }
}

/// Moment of a commit at which [`StoreOptions::on_commit`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitPhase {
    /// The batch is applied and not durable yet.
    Before,
    /// The batch is durable; nobody has been told yet.
    After,
}
