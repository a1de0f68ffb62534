//! The stdio transport: a child process whose three streams are each owned by a task of its own.
//!
//! Nothing the child does blocks anyone else: stdout is read in bounded frames, stderr is always drained, and writes wait
//! in a bounded queue. The process and everything it started are gone after the transport is.

mod answer_id;
mod frames;
mod process;
mod stderr;

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use harness_model::Redactor;
use harness_ports::TaskGroup;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::AsyncWriteExt as _,
    process::{ChildStdin, Command},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

pub(crate) use frames::is_unreadable;
pub(crate) use process::ProcessHandle;

/// Variables of the harness's environment that a child sees.
const PASSED_ON: [&str; 6] = ["HOME", "PATH", "USER", "SHELL", "TERM", "LOGNAME"];
/// Frames that wait to be written; when full, senders wait.
const OUTGOING_FRAMES: usize = 64;
/// Frames that were read and wait to be handled; when full, the child waits.
const INCOMING_FRAMES: usize = 16;

/// What to start.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// Names the server in logs.
    pub(crate) server: &'a str,
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) ambient_env: &'a BTreeMap<String, String>,
    pub(crate) cwd: Option<&'a Path>,
    pub(crate) stderr_file: Option<PathBuf>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) leave_timeout: Duration,
}

/// The transport of one child process. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    outgoing: mpsc::Sender<Outgoing>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    leave: CancellationToken,
}

#[derive(Debug)]
struct Outgoing {
    frame: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

/// Starts the program. `over` is cancelled when the process is gone and can no longer answer.
pub(crate) fn spawn(
    program: Program<'_>,
    over: &CancellationToken,
    group: &TaskGroup,
) -> io::Result<(StdioTransport, ProcessHandle)> {
    let mut command = Command::new(program.command);
    command
        .args(program.args)
        .env_clear()
        .envs(PASSED_ON.iter().filter_map(|name| program.ambient_env.get(*name).map(|value| (name, value))));
    command.envs(program.env).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = program.cwd {
        command.current_dir(cwd);
    }
    let mut child = command.spawn()?;
    let missing = || io::Error::other("a standard stream of the child is missing");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;

    let leave = group.stop_token().child_token();
    let reading = frames::Reading::default();
    let (outgoing, to_write) = mpsc::channel(OUTGOING_FRAMES);
    let (read, incoming) = mpsc::channel(INCOMING_FRAMES);
    let last_words = stderr::LastWords::new(program.redactor.clone());
    let (process, handle) = process::own(child, last_words.clone());

    group.spawn(write_frames(stdin, to_write, leave.clone()));
    group.spawn(frames::read(
        stdout,
        read,
        frames::Ends { server: program.server.to_owned(), leave: leave.clone(), reading: reading.clone() },
    ));
    group.spawn(stderr::drain(stderr, program.stderr_file, program.redactor, last_words));
    group.spawn(process.run(process::Signals {
        leave: leave.clone(),
        leave_timeout: program.leave_timeout,
        reading,
        over: over.clone(),
    }));
    Ok((StdioTransport { outgoing, incoming, leave }, handle))
}

/// Writes frames until the child has to leave. Dropping its stdin is what asks it to.
async fn write_frames(mut stdin: ChildStdin, mut frames: mpsc::Receiver<Outgoing>, leave: CancellationToken) {
    loop {
        let next = tokio::select! {
            biased;
            () = leave.cancelled() => return,
            next = frames.recv() => next,
        };
        let Some(next) = next else { return };
        let result = tokio::select! {
            biased;
            () = leave.cancelled() => return,
            result = stdin.write_all(&next.frame) => result,
        };
        let failed = result.is_err();
        next.written.send(result).ok();
        if failed {
            return;
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    /// An error means that the frame was not written whole, and so was not understood by the child.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let mut frame = serde_json::to_vec(&message)?;
            frame.push(b'\n');
            let (written, result) = oneshot::channel();
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            outgoing.send(Outgoing { frame, written }).await.map_err(|_| gone())?;
            result.await.map_err(|_| gone())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.leave.cancel();
        Ok(())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.leave.cancel();
    }
}
