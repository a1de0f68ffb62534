//! The database file: its lock, its mode and the connections to it.

use std::{
    fs::{File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use harness_ports::StoreError;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::error::{self, During};

/// Owner only: the store holds conversations.
const MODE: u32 = 0o600;
/// Kibibytes of page cache of the writer; negative is SQLite's way to say kibibytes.
const WRITER_CACHE: i64 = -8_192;
/// Kibibytes of page cache of a reader. Every commit empties it, so that more would not help.
const READER_CACHE: i64 = -1_024;
/// Pages of the write-ahead log after which the writer copies them into the database. SQLite's own 1,000 come every few
/// tasks, and whoever commits then waits for it; the same pages are written again and again, so that later is less work.
/// 32 MB, read once at the start after a crash.
const CHECKPOINT_PAGES: i64 = 8_000;
/// Prepared statements a connection keeps.
const STATEMENTS: usize = 64;
/// How long a connection waits for a lock of SQLite's own; only recovery and checkpoints hold one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes the lock that makes this process the only user of the store. It ends with the file.
pub(crate) fn lock(path: &Path) -> Result<File, StoreError> {
    let what = "opening its lock file";
    let file = private_file(&with_suffix(path, ".lock")).map_err(|e| error::io(what, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.display().to_string() }),
        Err(TryLockError::Error(e)) => Err(error::io(what, e)),
    }
}

/// The one connection that writes.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    prepare_files(path).map_err(|e| error::io("opening its file", e))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).during("opening the database")?;
    configure(&connection, WRITER_CACHE).during("opening the database")?;
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))
        .during("opening the database")?;
    if mode != "wal" {
        return Err(StoreError::Unavailable {
            what: "its file system has no shared memory, which the write-ahead log needs".to_owned(),
            source: None,
        });
    }
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;")
        .during("opening the database")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).during("opening the database")?;
    Ok(connection)
}

/// A connection that reads.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection, READER_CACHE)?;
    Ok(connection)
}

fn configure(connection: &Connection, cache: i64) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without it SQLite plans a kept statement anew whenever other values are bound: a third of the writer's time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", cache)
}

/// Makes the file when it is missing, and takes it and its companions from everybody else. SQLite gives the companions
/// it makes later the mode of the file.
fn prepare_files(path: &Path) -> io::Result<()> {
    drop(private_file(path)?);
    for suffix in ["-wal", "-shm"] {
        match std::fs::set_permissions(with_suffix(path, suffix), Permissions::from_mode(MODE)) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn private_file(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    Ok(file)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
