//! One server, from its start to its end.

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use harness_ports::TaskGroup;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    ServerOptions, StartError, StartFailure, State,
    child::{Leash, ServerProcess},
    health, listeners,
    log::{LastLines, Sink, Until, drain},
    options::loopback,
    state::LockedState,
};

/// Starts that are tried. A server takes several free ports, and between finding one and using it somebody else may take
/// it; the second time it finds others.
const STARTS_MAX: u32 = 2;
/// Time between two questions whether the server is ready.
const READY_RETRY: Duration = Duration::from_millis(10);
/// How long what the server said last may take to be read.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);
/// How long a killed server may take to be gone.
const KILLED_GRACE: Duration = Duration::from_secs(10);

/// A running Temporal development server that this process owns. Dropping it kills the server; so does the end of this
/// process, whatever ends it. Needs a Tokio runtime for as long as it runs.
#[derive(Debug)]
pub struct DevServer {
    address: SocketAddr,
    namespace: String,
    stop_grace: Duration,
    leash: Leash,
    owner: TaskGroup,
    died: watch::Receiver<Option<Died>>,
}

/// How a server ended that nobody stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("embedded Temporal ended by itself with {status}: {}", last_lines.join(" / "))]
pub struct Died {
    /// Its exit status.
    pub status: String,
    /// The last lines that it wrote, cleaned.
    pub last_lines: Vec<String>,
}

impl DevServer {
    /// Starts a server and waits until it answers. This may download the program, which is bounded to some minutes;
    /// see [`crate::BinarySource`].
    ///
    /// Errors: see [`StartFailure`]. Nothing is left running or locked then, nor when the future is dropped.
    pub async fn start(options: ServerOptions) -> Result<Self, StartError> {
        let binary_was_chosen = options.binary.binary_path.is_some();
        start(&options).await.map_err(|failure| StartError { failure, binary_was_chosen })
    }

    /// Where it listens: a port on 127.0.0.1, without TLS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The namespace that was asked for.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Waits until the server ends by itself. Never comes back when it is stopped instead.
    pub fn died(&self) -> impl Future<Output = Died> + Send + use<> {
        let mut died = self.died.clone();
        async move {
            // Without a sender it was stopped.
            let died = died.wait_for(Option::is_some).await.ok().and_then(|died| died.clone());
            match died {
                Some(died) => died,
                None => std::future::pending().await,
            }
        }
    }

    /// Stops the server and waits until it is gone and its state is free for the next one. Bounded by the grace of its
    /// options and a little more. When the future is dropped, the server is killed.
    pub async fn stop(self) {
        if !self.owner.shutdown(self.stop_grace + KILLED_GRACE).await {
            tracing::error!("embedded Temporal cannot be killed");
        }
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        self.owner.stop_token().cancel();
        self.leash.pull();
    }
}

async fn start(options: &ServerOptions) -> Result<DevServer, StartFailure> {
    let binary = options.binary.find().await?;
    let binary = std::path::absolute(&binary).unwrap_or(binary);
    let mut state = match &options.state {
        State::InMemory => None,
        State::File(database) => Some(LockedState::acquire(database).await?),
    };
    let owner = TaskGroup::new();
    let mut running = launch_somewhere(options, &binary, state.as_ref(), &owner).await?;
    if let Some(state) = &mut state
        && let Err(failure) = state.serve(running.process.identity())
    {
        running.end().await;
        return Err(failure);
    }
    let shown_state = match &options.state {
        State::InMemory => "in-memory".to_owned(),
        State::File(database) => database.display().to_string(),
    };
    tracing::info!(address = %running.address, namespace = options.namespace, state = shown_state, "embedded Temporal started");
    tracing::warn!(
        "embedded Temporal is a development server, not for production; use `mode = \"remote\"` there"
    );
    let (address, leash) = (running.address, running.process.leash());
    let (sender, died) = watch::channel(None);
    let stop_grace = options.stop_grace;
    let leave = if state.is_some() { Leave::InOrder(stop_grace) } else { Leave::AtOnce };
    owner.spawn(own(running, state, leave, owner.clone(), sender));
    Ok(DevServer { address, namespace: options.namespace.clone(), stop_grace, leash, owner, died })
}

/// A server that answers, or one that is about to.
struct Running {
    address: SocketAddr,
    process: ServerProcess,
    last_lines: LastLines,
    /// Reads the output.
    reader: TaskGroup,
}

impl Running {
    /// Kills it and reads what it said last.
    async fn end(&mut self) -> Vec<String> {
        // Its end was noticed already, or there is nothing more to know about it.
        self.process.kill().await.ok();
        self.reader.shutdown(LAST_WORDS_MAX).await;
        self.last_lines.get()
    }
}

/// How a server is stopped.
#[derive(Clone, Copy)]
enum Leave {
    /// Asked, and killed after this time.
    InOrder(Duration),
    /// Killed: it has nothing to put in order.
    AtOnce,
}

/// Waits for the end of a server, or brings it about.
async fn own(
    mut running: Running,
    state: Option<LockedState>,
    leave: Leave,
    owner: TaskGroup,
    died: watch::Sender<Option<Died>>,
) {
    let by_itself = tokio::select! {
        biased;
        () = owner.stop_token().cancelled() => None,
        status = running.process.ended() => Some(status),
    };
    if by_itself.is_none() {
        let status = match leave {
            Leave::InOrder(grace) => running.process.leave(grace).await,
            Leave::AtOnce => running.process.kill().await,
        };
        tracing::debug!(status = describe(status), "Temporal has left");
    }
    running.reader.shutdown(LAST_WORDS_MAX).await;
    if let Some(state) = state {
        state.leave();
    }
    match by_itself {
        None => tracing::info!("embedded Temporal stopped"),
        Some(status) => {
            let ended = Died { status: describe(status), last_lines: running.last_lines.get() };
            tracing::error!("{ended}");
            died.send_replace(Some(ended));
        }
    }
}

/// Launches it on the port that was asked for, or on a free one.
async fn launch_somewhere(
    options: &ServerOptions,
    binary: &Path,
    state: Option<&LockedState>,
    owner: &TaskGroup,
) -> Result<Running, StartFailure> {
    let mut started = 1;
    loop {
        let port = match options.port {
            Some(port) if is_taken(port) => return Err(StartFailure::PortTaken { port }),
            Some(port) => port,
            None => free_port().map_err(|source| spawn_failure(binary, source))?,
        };
        match launch(options, binary, state, owner, port).await {
            Err(failure @ StartFailure::Ended { .. }) if started < STARTS_MAX => {
                tracing::warn!(%failure, "embedded Temporal did not start; it is tried once more");
                started += 1;
            }
            launched => return launched,
        }
    }
}

async fn launch(
    options: &ServerOptions,
    binary: &Path,
    state: Option<&LockedState>,
    owner: &TaskGroup,
    port: u16,
) -> Result<Running, StartFailure> {
    let failed = |source| spawn_failure(binary, source);
    let sink = Sink::open(&options.log)?;
    let held = match state {
        Some(state) => state.handle().map_err(failed)?.into(),
        None => Stdio::null(),
    };
    let mut process = ServerProcess::start(binary, &options.arguments(port), held).map_err(failed)?;
    let (last_lines, reader) = (LastLines::default(), TaskGroup::new());
    if let Some(output) = process.output() {
        let until = Until { leaving: owner.stop_token().clone(), over: reader.stop_token().clone() };
        reader.spawn(drain(output, sink, last_lines.clone(), until));
    }
    let mut running = Running { address: loopback(port), process, last_lines, reader };
    match ready(&mut running, binary, options.start_max).await {
        Ok(()) => Ok(running),
        Err(mut failure) => {
            let said = running.end().await;
            if let StartFailure::Ended { last_lines, .. } | StartFailure::NotReady { last_lines, .. } =
                &mut failure
            {
                *last_lines = said;
            }
            Err(failure)
        }
    }
}

/// Waits until the server answers and looks where it listens. The last lines in a failure are left to the caller.
async fn ready(running: &mut Running, binary: &Path, limit: Duration) -> Result<(), StartFailure> {
    let binary = binary.to_path_buf();
    let address = running.address;
    tokio::select! {
        biased;
        status = running.process.ended() => {
            return Err(StartFailure::Ended { binary, status: describe(status), last_lines: Vec::new() });
        }
        ready = timeout(limit, until_serving(address)) => if ready.is_err() {
            return Err(StartFailure::NotReady { binary, seconds: limit.as_secs(), last_lines: Vec::new() });
        }
    }
    let listening = running.process.pid().and_then(listeners::of).unwrap_or_default();
    match listening.into_iter().find(|address| !address.ip().is_loopback()) {
        Some(address) => Err(StartFailure::NotLoopback { binary, address }),
        None => Ok(()),
    }
}

async fn until_serving(address: SocketAddr) {
    while !health::serves(address).await {
        sleep(READY_RETRY).await;
    }
}

fn spawn_failure(binary: &Path, source: io::Error) -> StartFailure {
    StartFailure::Spawn { binary: binary.to_path_buf(), source }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(loopback(0))?.local_addr()?.port())
}

fn is_taken(port: u16) -> bool {
    TcpListener::bind(loopback(port)).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn describe(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(_) => "nobody knows what".to_owned(),
    }
}
