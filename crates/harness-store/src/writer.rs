//! The writer: one thread that owns the one writing connection and makes many batches durable with one flush.

use std::{fs::File, sync::Arc, thread};

use futures::executor::block_on;
use harness_ports::{Committed, StoreError};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    apply::{Applied, Refused, apply},
    block_cache::BlockCache,
    encode::{Address, EncodedBatch, Op},
    error,
    hub::Hub,
    options::{CommitHook, CommitPhase},
};

/// Batches that wait for the writer; further callers wait for a place.
const QUEUE_CAPACITY: usize = 1_024;
/// Batches of one commit. More would only delay the first of them.
const GROUP_MAX: usize = 512;

/// A batch and who waits for it.
#[derive(Debug)]
pub(crate) struct Request {
    batch: EncodedBatch,
    answer: oneshot::Sender<Result<Committed, StoreError>>,
}

/// Hands batches to the writer.
#[derive(Clone, Debug)]
pub(crate) struct WriterHandle {
    queue: mpsc::Sender<Request>,
}

impl WriterHandle {
    /// Waits for a place in the queue, then for the commit. Dropping the future after it got its place does not take
    /// the batch back.
    pub(crate) async fn commit(self, batch: EncodedBatch) -> Result<Committed, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Request { batch, answer }).await.map_err(|_| error::closed())?;
        answered.await.map_err(|_| error::closed())?
    }
}

/// What the thread works with. The connection goes before the lock.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    /// Held as long as the thread may write.
    pub(crate) _lock: File,
    pub(crate) hub: Arc<Hub>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) on_commit: Option<CommitHook>,
    /// Ends the thread once it has written what is queued.
    pub(crate) stop: CancellationToken,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn spawn(self) -> Result<(WriterHandle, thread::JoinHandle<()>), StoreError> {
        let (queue, requests) = mpsc::channel(QUEUE_CAPACITY);
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || self.run(requests))
            .map_err(|e| error::io("starting its writer", e))?;
        Ok((WriterHandle { queue }, thread))
    }

    fn run(self, mut requests: mpsc::Receiver<Request>) {
        let group_max = if self.on_commit.is_some() { 1 } else { GROUP_MAX };
        let mut commits = 0;
        let mut group = Vec::with_capacity(group_max);
        let stop = self.stop.clone();
        while let Some(1..) = block_on(stop.run_until_cancelled(requests.recv_many(&mut group, group_max))) {
            self.commit(&mut group, &mut commits);
        }
        // Whoever has a place in the queue is served; `recv` would also wait for places that are never used.
        requests.close();
        while let Ok(request) = requests.try_recv() {
            group.push(request);
            self.commit(&mut group, &mut commits);
        }
    }

    /// Makes a group durable and tells everybody; the group is empty afterwards.
    fn commit(&self, group: &mut Vec<Request>, commits: &mut u64) {
        let applied = self.apply_group(group);
        let durable = applied.and_then(|applied| {
            let any = applied.iter().any(Result::is_ok);
            self.end_transaction(any, commits)?;
            Ok((applied, any))
        });
        let (applied, any) = match durable {
            Ok(durable) => durable,
            Err(cause) => return self.fail(group, &cause),
        };
        for (request, applied) in group.iter().zip(&applied) {
            if let Ok(applied) = applied {
                self.cache_blocks(&request.batch, &applied.removed_blocks);
            }
        }
        if any && let Some(hook) = &self.on_commit {
            hook(CommitPhase::After, *commits);
        }
        let mut published = Vec::new();
        for (request, applied) in group.drain(..).zip(applied) {
            if let Ok(applied) = &applied {
                published.extend(applied.committed.entries.iter().cloned());
                if !applied.deleted_tasks.is_empty() {
                    // What was published before them comes before their end, what comes after it belongs to new tasks.
                    self.hub.publish(&std::mem::take(&mut published));
                    self.hub.end(&applied.deleted_tasks);
                }
            }
            // A caller that no longer waits has dropped its future; its batch is kept all the same.
            drop(request.answer.send(applied.map(|applied| applied.committed)));
        }
        self.hub.publish(&published);
    }

    /// Applies the batches, the conditions of all of which nearly always hold.
    /// Errors: the database gave up the whole transaction.
    fn apply_group(&self, group: &[Request]) -> rusqlite::Result<Vec<Result<Applied, StoreError>>> {
        self.statement("BEGIN IMMEDIATE")?;
        let mut results = Vec::with_capacity(group.len());
        for request in group {
            match apply(&self.connection, &request.batch) {
                Ok(applied) => results.push(Ok(applied)),
                Err(Refused::Conflict(_) | Refused::Database(_)) => {
                    if !self.connection.is_autocommit() {
                        self.statement("ROLLBACK")?;
                    }
                    return self.apply_apart(group);
                }
            }
        }
        Ok(results)
    }

    /// Applies each batch so that a batch that fails leaves the others alone. Slower: to be able to take a batch back,
    /// SQLite keeps a copy of every page that it changes.
    fn apply_apart(&self, group: &[Request]) -> rusqlite::Result<Vec<Result<Applied, StoreError>>> {
        self.statement("BEGIN IMMEDIATE")?;
        let mut results = Vec::with_capacity(group.len());
        for request in group {
            self.statement("SAVEPOINT batch")?;
            let result = match apply(&self.connection, &request.batch) {
                Ok(applied) => Ok(applied),
                Err(Refused::Conflict(what)) => Err(StoreError::Conflict { what }),
                // Some errors make SQLite roll back everything at once: then there is nothing left to go on with.
                Err(Refused::Database(e)) if self.connection.is_autocommit() => return Err(e),
                Err(Refused::Database(e)) => Err(error::database("applying a change", e)),
            };
            if result.is_err() {
                self.statement("ROLLBACK TO batch")?;
            }
            self.statement("RELEASE batch")?;
            results.push(result);
        }
        Ok(results)
    }

    fn end_transaction(&self, any: bool, commits: &mut u64) -> rusqlite::Result<()> {
        if !any {
            return self.statement("ROLLBACK");
        }
        *commits += 1;
        if let Some(hook) = &self.on_commit {
            hook(CommitPhase::Before, *commits);
        }
        self.statement("COMMIT")
    }

    /// Nothing of the group is kept.
    fn fail(&self, group: &mut Vec<Request>, cause: &rusqlite::Error) {
        if !self.connection.is_autocommit()
            && let Err(e) = self.statement("ROLLBACK")
        {
            tracing::error!(error = %e, "the store could not take back a failed commit");
        }
        tracing::error!(error = %cause, batches = group.len(), "the store could not commit");
        for request in group.drain(..) {
            let error = error::database("committing", copy(cause));
            drop(request.answer.send(Err(error)));
        }
    }

    fn cache_blocks(&self, batch: &EncodedBatch, removed: &[Address]) {
        for address in removed {
            self.cache.remove(address);
        }
        for op in &batch.ops {
            if let Op::PutBlock { address, bytes, .. } = op {
                self.cache.put(*address, bytes);
            }
        }
    }

    fn statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(()).map(|_| ())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // However the thread ends, followers must not wait for entries that nobody will write.
        self.hub.close();
    }
}

/// One cause for each of several callers: the code and the text, which is all there is to an error of SQLite itself.
fn copy(error: &rusqlite::Error) -> rusqlite::Error {
    match error.sqlite_error() {
        Some(code) => rusqlite::Error::SqliteFailure(*code, Some(error.to_string())),
        None => rusqlite::Error::ToSqlConversionFailure(error.to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use harness_model::Timestamp;
    use harness_ports::{Block, Write, WriteBatch};

    use super::*;
    use crate::{connection, migrations};

    /// A writer without its thread, so that a test decides what a group is.
    fn writer(directory: &tempfile::TempDir) -> Writer {
        let path = directory.path().join("store.db");
        let lock = connection::lock(&path).unwrap();
        let mut connection = connection::open_writer(&path).unwrap();
        migrations::migrate(&mut connection, &path).unwrap();
        Writer {
            connection,
            _lock: lock,
            hub: Arc::default(),
            cache: Arc::new(BlockCache::new(1_000_000)),
            on_commit: None,
            stop: CancellationToken::new(),
        }
    }

    /// Commits a group and returns what each caller is told.
    fn commit(writer: &Writer, batches: Vec<Vec<Write>>) -> Vec<Result<Committed, StoreError>> {
        let request = |writes| {
            let batch = EncodedBatch::new(WriteBatch::new(Timestamp::from_millis(0), writes)).unwrap();
            let (answer, answered) = oneshot::channel();
            (Request { batch, answer }, answered)
        };
        let (mut group, answers): (Vec<_>, Vec<_>) = batches.into_iter().map(request).unzip();
        writer.commit(&mut group, &mut 0);
        assert!(group.is_empty());
        answers.into_iter().map(|answer| block_on(answer).unwrap()).collect()
    }

    fn create(id: &str) -> Write {
        Write::CreateWorkflow { workflow_id: id.into(), workflow_type: "test.v1".to_owned() }
    }

    fn put(block: Block) -> Write {
        Write::PutBlock { block, task_id: "t".into() }
    }

    fn workflows(writer: &Writer) -> i64 {
        writer.connection.query_row("SELECT count(*) FROM workflows", (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_failed_commit_fails_every_batch_of_the_group() {
        let directory = tempfile::tempdir().unwrap();
        let writer = writer(&directory);
        // A constraint that is checked when the transaction ends, and that this one workflow violates.
        let sql = "PRAGMA foreign_keys = ON;
                   CREATE TABLE parent (id INTEGER PRIMARY KEY);
                   CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
                   CREATE TRIGGER spoil AFTER INSERT ON workflows WHEN new.workflow_id = 'spoilt'
                   BEGIN INSERT INTO child VALUES (1); END;";
        writer.connection.execute_batch(sql).unwrap();
        let block = Block::new("never durable");
        let group = vec![vec![create("a"), put(block.clone())], vec![create("spoilt")]];
        for result in commit(&writer, group) {
            assert!(matches!(result, Err(StoreError::Unavailable { .. })), "{result:?}");
        }
        assert_eq!(workflows(&writer), 0);
        assert_eq!(writer.cache.get(&crate::encode::address(&block.reference.id)), None);
        assert!(commit(&writer, vec![vec![create("a")]])[0].is_ok(), "the writer goes on");
    }

    #[test]
    fn a_full_disk_fails_the_batch_that_does_not_fit() {
        let directory = tempfile::tempdir().unwrap();
        let writer = writer(&directory);
        let pages: i64 = writer.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer.connection.pragma_update(None, "max_page_count", pages + 10).unwrap();
        let large = put(Block::new(vec![7; 1_000_000]));
        let results = commit(&writer, vec![vec![create("a")], vec![create("b"), large], vec![create("c")]]);
        assert!(matches!(results[1], Err(StoreError::Unavailable { .. })), "{results:?}");
        let kept = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(
            workflows(&writer),
            i64::try_from(kept).unwrap(),
            "what is kept is what callers were told"
        );
        assert!(commit(&writer, vec![vec![create("d")]])[0].is_ok(), "the writer goes on");
    }

    #[test]
    fn a_conflict_in_the_middle_of_a_group_leaves_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let writer = writer(&directory);
        let results =
            commit(&writer, vec![vec![create("a")], vec![create("b"), create("a")], vec![create("b")]]);
        assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
        assert!(matches!(results[1], Err(StoreError::Conflict { .. })), "{results:?}");
        assert_eq!(workflows(&writer), 2);
    }
}
