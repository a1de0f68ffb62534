//! The connections that read: few, opened when first needed, and never more than asked for.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use harness_ports::StoreError;
use rusqlite::Connection;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use crate::{connection::open_reader, error};

/// Why a read has no result.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The database failed.
    Database(rusqlite::Error),
    /// A row does not have the form it must have.
    Corrupt(String),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<ReadError> for StoreError {
    fn from(read: ReadError) -> Self {
        match read {
            ReadError::Database(e) => error::database("reading", e),
            ReadError::Corrupt(what) => error::corrupt(what),
        }
    }
}

/// A bounded pool of connections.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, connections: usize) -> Self {
        Self { path, permits: Arc::new(Semaphore::new(connections.max(1))), idle: Mutex::default() }
    }

    /// Reads on a thread where waiting for a disk hurts nobody.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| error::closed())?;
        let readers = Arc::clone(self);
        // Awaited here; a caller that stops waiting leaves it to finish, and the permit bounds how many do.
        spawn_blocking(move || readers.run(permit, read)).await.map_err(|e| StoreError::Unavailable {
            what: "a read was given up".to_owned(),
            source: Some(Box::new(e)),
        })?
    }

    /// Reads a few rows by key. On the caller's thread when a connection is free: such a read takes microseconds from
    /// the page cache, several times less than going to another thread and back. A cold page costs one disk access.
    pub(crate) async fn read_few<T, F>(self: &Arc<Self>, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    {
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => self.run(permit, read),
            Err(_) => self.read(read).await,
        }
    }

    /// Closes the connections that are idle; the others close when their read has ended.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }

    fn run<T>(
        &self,
        permit: OwnedSemaphorePermit,
        read: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open_reader(&self.path).map_err(ReadError::from)?,
        };
        let result = read(&connection);
        if !self.permits.is_closed() {
            self.idle().push(connection);
        }
        drop(permit);
        Ok(result?)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs several statements over one state of the database.
pub(crate) fn snapshot<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    connection.prepare_cached("BEGIN")?.execute(())?;
    let result = read(connection);
    connection.prepare_cached("ROLLBACK")?.execute(())?;
    result
}
