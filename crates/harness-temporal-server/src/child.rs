//! The process itself: it never outlives its owner, however that ends.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStderr, Command},
    time::timeout,
};

use crate::identity::Identity;

const SHELL: &str = "/bin/sh";
/// Starts a watcher and then becomes the server.
///
/// The watcher waits at a pipe whose other end only the owner has. When the owner ends in whatever way, the kernel closes
/// that end, and the watcher kills the server. A line in the pipe says that the server is gone already. This works for any
/// program on any Unix, needs no unsafe code, and does not depend on which thread of the owner started it, as the signal
/// at the parent's death would.
///
/// All of it is one process group, so that whatever the server starts goes with it.
///
/// What came as standard output is handed on as file 4: the lock of the state, so that it is held as long as the server
/// runs.
const SCRIPT: &str = r#"umask 077
exec 3<&0 4>&1 </dev/null >&2
( trap '' HUP INT TERM; exec 4>&- >/dev/null 2>&1; read -r gone <&3 || kill -s KILL -- -$$ ) &
exec 3<&- "$@""#;
/// Tells the watcher that the server is gone.
const GONE: &[u8] = b"gone\n";

/// The owner's end of the watcher's pipe. When the last clone is dropped without [`Leash::loosen`], the server is killed.
#[derive(Clone, Debug)]
pub(crate) struct Leash(Arc<Mutex<Option<File>>>);

impl Leash {
    fn new(pipe: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(Some(pipe.into()))))
    }

    fn take(&self) -> Option<File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Kills the server now. Nothing happens when it is gone.
    pub(crate) fn pull(&self) {
        drop(self.take());
    }

    /// Sends the watcher home: the server is gone, and its process id may soon be somebody else's.
    fn loosen(&self) {
        if let Some(mut pipe) = self.take() {
            // Five bytes always fit; it fails when the watcher is gone too.
            pipe.write_all(GONE).ok();
        }
    }
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    leash: Leash,
}

impl ServerProcess {
    /// Starts a program that holds `held` open for as long as it runs.
    pub(crate) fn start(binary: &Path, arguments: &[std::ffi::OsString], held: Stdio) -> io::Result<Self> {
        let mut child = Command::new(SHELL)
            .args(["-c", SCRIPT, "temporal"])
            .arg(binary)
            .args(arguments)
            // It needs nothing of this environment. There are secrets in it, and what a person has set up for the
            // command line, or in a file below `HOME`, is not meant for this server.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(held)
            .stderr(Stdio::piped())
            // Ctrl-C is for the owner, which then stops its server in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.into_owned_fd()?;
        Ok(Self { child, leash: Leash::new(pipe) })
    }

    pub(crate) fn leash(&self) -> Leash {
        self.leash.clone()
    }

    /// What it writes; once.
    pub(crate) fn output(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Its process id, until its end was noticed.
    pub(crate) fn pid(&self) -> Option<i32> {
        i32::try_from(self.child.id()?).ok()
    }

    /// Which process it is; on Linux, until its end was noticed.
    pub(crate) fn identity(&self) -> Option<Identity> {
        Identity::of(self.pid()?)
    }

    /// Waits for its end. May be dropped and asked again.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.leash.loosen();
        status
    }

    /// Asks it to leave, and kills it when it does not within `grace`.
    pub(crate) async fn leave(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        match timeout(grace, self.ended()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        }
    }

    /// Kills it and waits until it is gone.
    pub(crate) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.ended().await
    }

    /// To the whole group; the watcher in it hears only [`Signal::KILL`].
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.pid().and_then(Pid::from_raw) {
            // It may end on its own in this moment.
            kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Before the watcher is sent home: after this nobody else needs to kill it.
        self.signal(Signal::KILL);
        self.leash.loosen();
    }
}
