//! The child process and the group it leads: asked to leave, then told, then killed.

use std::{io, process::ExitStatus, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{process::Child, sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    frames::{Reading, Settled},
    stderr::LastWords,
};

/// How long stdout may stay open and silent after the process is gone, held by something that left its group.
const QUIET: Duration = Duration::from_millis(300);

/// What the owner of a session knows about its process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessHandle {
    ended: watch::Receiver<Option<String>>,
    last_words: LastWords,
}

impl ProcessHandle {
    /// Waits until the process is gone and says how it ended.
    pub(crate) async fn ended(&mut self) -> String {
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or_default(),
            // Its owner was dropped, and has killed it.
            Err(_) => "killed".to_owned(),
        }
    }

    /// The last line on stderr; bounded, one line, without secrets.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.last_words.get()
    }
}

/// What the owner waits for and tells.
#[derive(Debug)]
pub(super) struct Signals {
    /// Cancelled to end the process.
    pub(super) leave: CancellationToken,
    pub(super) leave_timeout: Duration,
    pub(super) reading: Reading,
    /// Cancelled here when the process is gone although stdout stays open.
    pub(super) over: CancellationToken,
}

/// Owns a child. Dropping it kills the child and its group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Group,
    ended: watch::Sender<Option<String>>,
}

/// Takes ownership of a child that leads its own process group.
pub(super) fn own(child: Child, last_words: LastWords) -> (Process, ProcessHandle) {
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    let (ended, receiver) = watch::channel(None);
    (Process { child, group, ended }, ProcessHandle { ended: receiver, last_words })
}

impl Process {
    /// Waits for the process, or ends it when asked.
    pub(super) async fn run(mut self, signals: Signals) {
        let status = tokio::select! {
            biased;
            status = self.child.wait() => status,
            () = signals.leave.cancelled() => self.leave(signals.leave_timeout).await,
        };
        // Whatever the process started and left behind holds its streams and would outlive the harness.
        self.group.end(Signal::KILL);
        self.group = Group(None);
        // What the process wrote before it ended still counts.
        if signals.reading.settled(QUIET).await == Settled::HeldOpen {
            signals.over.cancel();
        }
        signals.leave.cancel();
        self.ended.send_replace(Some(describe(status)));
    }

    /// Its stdin is closed by now. Most servers leave at that; the others get half the time, SIGTERM and the other half.
    async fn leave(&mut self, within: Duration) -> io::Result<ExitStatus> {
        for signal in [Signal::TERM, Signal::KILL] {
            if let Ok(status) = timeout(within / 2, self.child.wait()).await {
                return status;
            }
            self.group.end(signal);
        }
        self.child.wait().await
    }
}

/// A process group; killed when dropped.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn end(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It fails when nobody is left, which is what is wanted.
            kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end(Signal::KILL);
    }
}

fn describe(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(_) => "ended, nobody knows how".to_owned(),
    }
}
