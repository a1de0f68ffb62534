//! Programs under test as real processes: started, watched, typed to, signalled, killed.

use std::{
    ffi::OsStr,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use harness_ports::TaskGroup;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    sync::watch,
    time::timeout,
};

/// How long anything may take before a test gives up; a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long output may stay open once the process is gone.
const READERS_GRACE: Duration = Duration::from_secs(5);
/// Variables that a program under test inherits; everything else would make tests depend on who runs them.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// A program that is about to be started.
#[derive(Debug)]
pub struct Program {
    command: Command,
}

/// How a program ended, and everything it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Whether it was killed as `kill -9` does.
    pub fn was_killed(&self) -> bool {
        self.signal == Some(Signal::KILL.as_raw())
    }
}

impl Program {
    /// The program at this path, with no arguments and few variables of this environment.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(path);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        Self { command }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it in this folder.
    #[must_use]
    pub fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it to its end with nothing to read.
    ///
    /// # Panics
    /// When it cannot be started or does not end.
    pub async fn run(self) -> Ended {
        self.start().ended().await
    }

    /// Starts it with a keyboard: see [`Process::type_line`].
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_with_keyboard(mut self) -> Process {
        self.command.stdin(Stdio::piped());
        self.start()
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub fn start(mut self) -> Process {
        let mut child = self.command.spawn().expect("the program under test starts");
        let readers = TaskGroup::new();
        let stdout = Output::read(child.stdout.take().expect("stdout is a pipe"), &readers);
        let stderr = Output::read(child.stderr.take().expect("stderr is a pipe"), &readers);
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.expect("a process that was just started has an id");
        Process { stdin: child.stdin.take(), child, pid, stdout, stderr, readers }
    }
}

/// A running program; dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    stdin: Option<ChildStdin>,
    stdout: Output,
    stderr: Output,
    readers: TaskGroup,
}

impl Process {
    /// Waits until standard output contains this, and returns all of it so far.
    ///
    /// # Panics
    /// When the program ends, or takes too long, without saying it.
    pub async fn stdout_contains(&mut self, wanted: &str) -> String {
        self.stdout.contains(wanted).await.unwrap_or_else(|| self.silent(wanted))
    }

    /// The same on standard error.
    ///
    /// # Panics
    /// When the program ends, or takes too long, without saying it.
    pub async fn stderr_contains(&mut self, wanted: &str) -> String {
        self.stderr.contains(wanted).await.unwrap_or_else(|| self.silent(wanted))
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    fn silent(&self, wanted: &str) -> ! {
        panic!(
            "never said {wanted:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout.text(),
            self.stderr.text()
        )
    }

    /// Types a line.
    ///
    /// # Panics
    /// Without a keyboard, or when the program does not listen any more.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn type_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the program was started with a keyboard");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("the program reads what is typed");
        stdin.flush().await.expect("the program reads what is typed");
    }

    /// Ends the input, as Ctrl-D does.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Asks it to stop, as a supervisor does.
    pub fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Interrupts it, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.send(Signal::INT);
    }

    /// Kills it, as `kill -9` and power cuts do, and waits until it is gone.
    ///
    /// # Panics
    /// When it is not gone in time.
    pub async fn kill(self) -> Ended {
        self.send(Signal::KILL);
        self.ended().await
    }

    fn send(&self, signal: Signal) {
        // A process that ended already needs no signal; its status tells.
        let _gone = kill_process(self.pid, signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn ended(mut self) -> Ended {
        let status = match timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.expect("a child can be waited for"),
            Err(_elapsed) => self.silent("goodbye"),
        };
        self.readers.shutdown(READERS_GRACE).await;
        self.end(status)
    }

    fn end(&self, status: ExitStatus) -> Ended {
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }

    /// The most memory it ever had resident, in bytes; 0 once it has ended.
    pub fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_nonzero()));
        let status = status.unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

/// What a program has said so far on one of its outputs.
#[derive(Debug)]
struct Output {
    said: watch::Receiver<Vec<u8>>,
}

impl Output {
    /// Reads to the end, however much comes: a program under test must not block on a full pipe.
    fn read(mut pipe: impl AsyncRead + Send + Unpin + 'static, readers: &TaskGroup) -> Self {
        let (say, said) = watch::channel(Vec::new());
        readers.spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                say.send_modify(|all| all.extend_from_slice(buffer.get(..read).unwrap_or_default()));
            }
        });
        Self { said }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said.borrow()).into_owned()
    }

    /// Everything so far once it contains this; `None` when it never does.
    async fn contains(&mut self, wanted: &str) -> Option<String> {
        let found = self.said.wait_for(|said| String::from_utf8_lossy(said).contains(wanted));
        let found = timeout(PATIENCE, found).await.ok()?.ok()?;
        Some(String::from_utf8_lossy(&found).into_owned())
    }
}
