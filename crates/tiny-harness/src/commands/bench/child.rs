//! A process that is measured: started, found, looked at, stopped.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use harness_ports::TaskGroup;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child as Process, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::oneshot,
    time::{Instant, timeout},
};

use super::parts::Part;
use crate::failure::Failure;

/// How long a process may take to serve, and to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines of its standard error that are kept for the case that it fails.
const TAIL_LINES: usize = 20;

/// A server in a process of its own.
pub(super) struct Child {
    process: Process,
    /// Where it serves.
    pub(super) address: SocketAddr,
    /// When the process was started.
    pub(super) begun: Instant,
    questions: Option<(ChildStdin, BufReader<ChildStdout>)>,
    tail: Tail,
    group: TaskGroup,
}

type Tail = Arc<Mutex<VecDeque<String>>>;

impl Child {
    /// `tiny-harness serve` with this configuration.
    pub(super) async fn serve(program: &Path, config: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(config);
        Self::start(command).await
    }

    /// A part of the measurement that needs a process.
    pub(super) async fn part(program: &Path, part: &Part) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.args(["bench", "--part", &part.argument()?]);
        Self::start(command).await
    }

    async fn start(mut command: Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let begun = Instant::now();
        let mut process = command
            .spawn()
            .map_err(|e| Failure::general(format!("cannot start a process to measure: {e}")))?;
        let (group, tail) = (TaskGroup::new(), Tail::default());
        let (found, address) = oneshot::channel();
        let Some(stderr) = process.stderr.take() else { return Err(silent(&tail)) };
        group.spawn(listen(stderr, Arc::clone(&tail), found));
        let questions = process.stdin.take().zip(process.stdout.take().map(BufReader::new));
        let address = timeout(PATIENCE, address).await;
        let Ok(Ok(address)) = address else { return Err(silent(&tail)) };
        Ok(Self { process, address, begun, questions, tail, group })
    }

    /// Memory that the process has in RAM. Unit: bytes.
    pub(super) fn resident_bytes(&self) -> Result<u64, Failure> {
        let status =
            self.process.id().and_then(|id| std::fs::read_to_string(format!("/proc/{id}/status")).ok());
        let kib = status.as_deref().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
        kib.map(|kib| kib * 1_024).ok_or_else(|| Failure::general("cannot read the memory of a process"))
    }

    /// Processor time that the process has used so far.
    pub(super) fn cpu_time(&self) -> Result<Duration, Failure> {
        let stat = self.process.id().and_then(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok());
        stat.as_deref()
            .and_then(cpu_time_in)
            .ok_or_else(|| Failure::general("cannot read the processor time of a process"))
    }

    /// Sends a line to the process and gives back the line it answers with.
    pub(super) async fn question(&mut self) -> Result<String, Failure> {
        let Some((to, from)) = &mut self.questions else { return Err(silent(&self.tail)) };
        let mut line = String::new();
        let asked = async {
            to.write_all(b"\n").await?;
            from.read_line(&mut line).await
        };
        match timeout(PATIENCE, asked).await {
            Ok(Ok(1..)) => Ok(line),
            Ok(Ok(0) | Err(_)) | Err(_) => Err(silent(&self.tail)),
        }
    }

    /// Ends the process as an operator would, and waits for it.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        let id = self.process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(id) = id {
            // It may have ended by itself; then there is nobody to tell.
            let _gone = kill_process(id, Signal::TERM);
        }
        match timeout(PATIENCE, self.process.wait()).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return Err(Failure::general("a process that was measured does not end")),
        }
        self.group.shutdown(PATIENCE).await;
        Ok(())
    }
}

/// Finds the line that says where the server is, and keeps the newest lines.
async fn listen(stderr: ChildStderr, tail: Tail, found: oneshot::Sender<SocketAddr>) {
    let mut lines = BufReader::new(stderr).lines();
    let mut found = Some(found);
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(address) = address_in(&line)
            && let Some(found) = found.take()
        {
            // Nobody waits any more when the start took too long.
            let _late = found.send(address);
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}

/// `serving NAME at http://ADDRESS`
fn address_in(line: &str) -> Option<SocketAddr> {
    line.strip_prefix("serving ")?.rsplit_once(" at http://")?.1.trim().parse().ok()
}

/// User and system time in a `/proc/PID/stat`. Unit there: hundredths of a second, whatever the kernel counts in.
fn cpu_time_in(stat: &str) -> Option<Duration> {
    // The name of the program stands in brackets and may hold spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 10))
}

fn silent(tail: &Tail) -> Failure {
    let mut failure =
        Failure::general("a process that is measured does not answer; the end of what it said:");
    failure.lines.extend(tail.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_what_the_server_says() {
        let address = "127.0.0.1:4711".parse().ok();
        assert_eq!(address_in("serving an agent at home at http://127.0.0.1:4711"), address);
        assert_eq!(address_in("cannot listen at http://127.0.0.1:4711"), None);
    }

    #[test]
    fn processor_time_is_user_and_system_time() {
        let stat = "42 (a b) c) S 1 42 42 0 -1 4194560 900 0 1 0 150 25 0 0 20 0 5 0 1000 1 2";
        assert_eq!(cpu_time_in(stat), Some(Duration::from_millis(1_750)));
    }
}
