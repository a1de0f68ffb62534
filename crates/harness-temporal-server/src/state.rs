//! The state of a server on disk: one owner at a time, and nobody else's business.
//!
//! The lock is held by the server itself too, so that it lasts exactly as long as something can write the database. Its
//! file says who the owner and the server are; with that a server whose owner is gone is told from one that is in use.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use tokio::time::{Instant, sleep};

use crate::{StartFailure, identity::Identity};

/// For the owner only.
const PRIVATE: u32 = 0o600;
/// How long a server may take to notice that its owner is gone; it takes milliseconds.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);
/// How long a killed server may take to be gone.
const KILLED_GRACE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(10);
/// Bytes of a record.
const RECORD_BYTES_MAX: u64 = 8 * 1024;

/// The database of one server, locked.
#[derive(Debug)]
pub(crate) struct LockedState {
    database: PathBuf,
    lock: File,
}

impl LockedState {
    /// Locks a database and makes what there is of it private. The database itself is never made here: the server
    /// makes its tables only where there is no file.
    ///
    /// A server that has lost its owner is waited for, and killed when it does not go.
    pub(crate) async fn acquire(database: &Path) -> Result<Self, StartFailure> {
        if database.as_os_str().as_encoded_bytes().iter().any(|byte| b"%?#".contains(byte)) {
            return Err(StartFailure::StatePath { path: database.to_path_buf() });
        }
        let path = with_suffix(database, ".lock");
        let failed = |what| {
            let path = path.clone();
            move |source| StartFailure::State { what, path, source }
        };
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(PRIVATE)
            .open(&path)
            .map_err(failed("open"))?;
        lock.set_permissions(Permissions::from_mode(PRIVATE)).map_err(failed("protect"))?;
        if !try_lock(&lock).map_err(failed("lock"))? && !take_over(&lock).await.map_err(failed("lock"))? {
            return Err(StartFailure::InUse { path: database.to_path_buf() });
        }
        let mut state = Self { database: database.to_path_buf(), lock };
        state.record(None).map_err(failed("write"))?;
        state.protect()?;
        Ok(state)
    }

    /// Another handle of the lock, for the server to hold.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.lock.try_clone()
    }

    /// To be called when a server has begun to use it: makes its files private and writes down which process it is.
    pub(crate) fn serve(&mut self, server: Option<Identity>) -> Result<(), StartFailure> {
        self.protect()?;
        // By now it is the program itself, also where a link or a script was started.
        let Some((server, program)) = server.and_then(|server| Some((server, server.program()?))) else {
            return Ok(());
        };
        let path = with_suffix(&self.database, ".lock");
        self.record(Some((server, &program))).map_err(|source| StartFailure::State {
            what: "write",
            path,
            source,
        })
    }

    /// Writes down that nobody owns the state any more. Only a hint for the next owner, who does without it too.
    pub(crate) fn leave(self) {
        self.lock.set_len(0).ok();
    }

    /// Writes down who owns the state and, once it runs, which process serves it with which program.
    fn record(&mut self, server: Option<(Identity, &Path)>) -> io::Result<()> {
        let mut record = String::new();
        if let Some(owner) = Identity::own() {
            record.push_str(&format!("owner {owner}\n"));
        }
        if let Some((server, program)) = server {
            record.push_str(&format!("server {server}\nprogram {}\n", program.display()));
        }
        self.lock.set_len(0)?;
        self.lock.seek(SeekFrom::Start(0))?;
        self.lock.write_all(record.as_bytes())
    }

    /// Makes the files of the database private, those that are there.
    fn protect(&self) -> Result<(), StartFailure> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let path = with_suffix(&self.database, suffix);
            match fs::set_permissions(&path, Permissions::from_mode(PRIVATE)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(StartFailure::State { what: "protect", path, source }),
            }
        }
        Ok(())
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn try_lock(lock: &File) -> io::Result<bool> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes a lock that is held by a server without an owner. Whether that went well.
async fn take_over(lock: &File) -> io::Result<bool> {
    let record = Record::read(lock)?;
    let own = Identity::own();
    if record.owner.is_some_and(|owner| owner.is_alive() && Some(owner) != own) {
        return Ok(false);
    }
    // Its owner is gone and it is about to notice; or this very process has just dropped it; or somebody has the lock
    // and has not yet said who it is.
    if lock_within(lock, ORPHAN_GRACE).await? {
        return Ok(true);
    }
    let Some(orphan) = Record::read(lock)?.orphan() else { return Ok(false) };
    tracing::warn!(process = %orphan, "killing a Temporal server that has lost its owner");
    orphan.kill();
    lock_within(lock, KILLED_GRACE).await
}

async fn lock_within(lock: &File, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if try_lock(lock)? {
            return Ok(true);
        }
        sleep(RETRY).await;
    }
    Ok(false)
}

/// What the lock's file says. Whatever cannot be understood is as good as absent.
#[derive(Debug, Default)]
struct Record {
    owner: Option<Identity>,
    server: Option<Identity>,
    program: Option<PathBuf>,
}

impl Record {
    fn read(lock: &File) -> io::Result<Self> {
        let mut reader = lock;
        reader.seek(SeekFrom::Start(0))?;
        let mut text = Vec::new();
        reader.take(RECORD_BYTES_MAX).read_to_end(&mut text)?;
        let mut record = Self::default();
        for line in String::from_utf8_lossy(&text).lines() {
            match line.split_once(' ') {
                Some(("owner", identity)) => record.owner = identity.parse().ok(),
                Some(("server", identity)) => record.server = identity.parse().ok(),
                Some(("program", path)) => record.program = Some(path.into()),
                Some(_) | None => {}
            }
        }
        Ok(record)
    }

    /// The server, when it runs, is the very process that was recorded, and its owner is gone.
    fn orphan(self) -> Option<Identity> {
        let (owner, server, recorded) = (self.owner?, self.server?, self.program?);
        // An update may have replaced the file meanwhile; then the kernel says so behind its name.
        let replaced = with_suffix(&recorded, " (deleted)");
        let is_same = server.program().is_some_and(|program| program == recorded || program == replaced);
        (!owner.is_alive() && is_same).then_some(server)
    }
}
