//! The owner of one server: it alone connects, respawns and closes, so that no two calls ever start it twice.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use harness_ports::TaskGroup;
use rmcp::{
    RoleClient,
    model::Tool,
    serve_client,
    service::{ClientInitializeError, RunningService},
    transport::Transport,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{McpOptions, ServerConfig, ServerTransport},
    http,
    restarts::Restarts,
    session::{Client, Link, Session, Wire},
    stdio::{self, ProcessHandle, Program},
    watched::{Watch, Watched},
};

/// Calls that wait for a session; when full, further ones wait to wait.
const WAITING_CALLS: usize = 64;
/// Longest wait for a restart that a call takes on itself; beyond it the call is told.
const RESTART_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long an open session may take to list its tools again.
const LISTING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long calls in flight on a retired session may go on.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process may take to be gone before its end is described.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// Why there is no session: words that follow the server's name, for people.
pub(crate) type Unavailable = String;

type Reply = oneshot::Sender<Result<Arc<Session>, Unavailable>>;

/// A server, as calls see it.
#[derive(Debug)]
pub(crate) struct ServerHandle {
    calls: mpsc::Sender<Reply>,
    /// Sessions that expired since a call was answered.
    expiries: AtomicU32,
}

impl ServerHandle {
    /// An open session whose tools were listed; connects, waits or fails as needed. May be given up by dropping.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Unavailable> {
        let (reply, session) = oneshot::channel();
        let stopped = || "is stopped".to_owned();
        self.calls.send(reply).await.map_err(|_| stopped())?;
        session.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// A session expired.
    pub(crate) fn note_expiry(&self) {
        self.expiries.fetch_add(1, Ordering::AcqRel);
    }

    /// A call was answered.
    pub(crate) fn note_answer(&self) {
        self.expiries.store(0, Ordering::Release);
    }

    /// Whether the server forgot a session that was begun because it had forgotten one: another one would not help.
    pub(crate) fn forgets_every_session(&self) -> bool {
        self.expiries.load(Ordering::Acquire) > 1
    }
}

/// The first listing of a server.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) handle: ServerHandle,
    pub(crate) tools: Vec<Tool>,
}

/// Connects to a server and lists its tools, within `options.start_timeout`.
pub(crate) async fn start(
    config: ServerConfig,
    stderr_file: Option<PathBuf>,
    options: Arc<McpOptions>,
    group: &TaskGroup,
) -> Result<Started, Unavailable> {
    let mut owner = Owner {
        config,
        stderr_file,
        options,
        group: group.clone(),
        restarts: Restarts::default(),
        current: None,
        starts: 0,
    };
    let tools = owner.connect().await?;
    let (calls, waiting) = mpsc::channel(WAITING_CALLS);
    group.spawn(owner.run(waiting));
    Ok(Started { handle: ServerHandle { calls, expiries: AtomicU32::new(0) }, tools })
}

/// An open connection and what has to be closed with it.
struct Connection {
    session: Arc<Session>,
    running: RunningService<RoleClient, Client>,
    process: Option<ProcessHandle>,
}

struct Owner {
    config: ServerConfig,
    stderr_file: Option<PathBuf>,
    options: Arc<McpOptions>,
    group: TaskGroup,
    restarts: Restarts,
    current: Option<Connection>,
    starts: u64,
}

impl Owner {
    async fn run(mut self, mut calls: mpsc::Receiver<Reply>) {
        let stop = self.group.stop_token().clone();
        loop {
            let link = self.current.as_ref().map(|connection| connection.session.link.clone());
            let ended = async {
                match &link {
                    Some(link) => link.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = ended => self.close_current(),
                call = calls.recv() => {
                    let Some(reply) = call else { break };
                    if reply.is_closed() {
                        continue;
                    }
                    let session = tokio::select! {
                        biased;
                        () = stop.cancelled() => break,
                        session = self.session() => session,
                    };
                    // Nobody is there to take it when the call was given up meanwhile; the next one will.
                    drop(reply.send(session));
                }
            }
        }
        if let Some(connection) = self.current.take() {
            close(connection, self.options.leave_timeout, stop).await;
        }
    }

    /// The current session, checked, or a new one.
    async fn session(&mut self) -> Result<Arc<Session>, Unavailable> {
        if self.current.as_ref().is_some_and(|connection| !connection.session.link.is_usable()) {
            self.close_current();
        }
        if self.current.is_some()
            && let Some(session) = self.checked().await?
        {
            return Ok(session);
        }
        let wait = self.restarts.wait(Instant::now());
        if wait > RESTART_WAIT_MAX {
            return Err(format!(
                "keeps failing; it is started again in {} s at the earliest",
                wait.as_secs() + 1
            ));
        }
        sleep(wait).await;
        self.connect().await?;
        let session = self.current.as_ref().map(|connection| connection.session.clone());
        session.ok_or_else(|| "is stopped".to_owned())
    }

    /// The current session, listed again when that is due; `None` when it turned out to be of no use.
    async fn checked(&mut self) -> Result<Option<Arc<Session>>, Unavailable> {
        let Some(connection) = &mut self.current else { return Ok(None) };
        let link = connection.session.link.clone();
        let changed = link.take_tools_changed();
        // A busy server may be slow to list and is not disturbed without cause.
        let aged = connection.session.listed_at.elapsed() > self.options.relist_after && link.is_idle();
        if !changed && !aged {
            return Ok(Some(connection.session.clone()));
        }
        let idle = link.is_idle();
        if let Ok(Ok(tools)) = timeout(LISTING_TIMEOUT, link.list_tools()).await {
            connection.session = Arc::new(Session::new(link, &tools, Instant::now()));
            return Ok(Some(connection.session.clone()));
        }
        if idle || !link.is_usable() {
            link.end();
            self.close_current();
            return Ok(None);
        }
        link.mark_tools_changed();
        Err("changed its tools and does not list them".to_owned())
    }

    /// Opens a connection and lists the tools; on success it is the current one.
    async fn connect(&mut self) -> Result<Vec<Tool>, Unavailable> {
        self.starts += 1;
        if self.starts > 1 {
            tracing::info!(server = self.config.registry_prefix, "MCP server is started again");
        }
        match self.open().await {
            Ok((connection, tools)) => {
                self.current = Some(connection);
                Ok(tools)
            }
            Err(why) => {
                self.restarts.failed(Instant::now());
                Err(why)
            }
        }
    }

    async fn open(&self) -> Result<(Connection, Vec<Tool>), Unavailable> {
        let watch = Watch::default();
        match &self.config.transport {
            ServerTransport::Stdio { command, args, env, cwd } => {
                let program = Program {
                    server: &self.config.registry_prefix,
                    command,
                    args,
                    env,
                    ambient_env: &self.options.ambient_env,
                    cwd: cwd.as_deref(),
                    stderr_file: self.stderr_file.clone(),
                    redactor: self.options.redactor.clone(),
                    leave_timeout: self.options.leave_timeout,
                };
                let (transport, mut process) = stdio::spawn(program, &watch.over, &self.group)
                    .map_err(|error| format!("cannot be started: {}", error.kind()))?;
                match self.greet(transport, watch, Some(process.clone())).await {
                    Ok(opened) => Ok(opened),
                    Err(failed) => Err(with_last_words(failed, &mut process).await),
                }
            }
            ServerTransport::StreamableHttp { url, headers } => {
                self.greet(http::open(url, headers)?, watch, None).await.map_err(Failed::words)
            }
        }
    }

    async fn greet<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        watch: Watch,
        process: Option<ProcessHandle>,
    ) -> Result<(Connection, Vec<Tool>), Failed> {
        let wire = if process.is_some() { Wire::Pipe } else { Wire::Http };
        let greeting = async {
            let transport = Watched::new(transport, watch.clone());
            let running = serve_client(Client, transport).await.map_err(|error| describe(&error))?;
            let link = Arc::new(Link::new(running.peer().clone(), wire, watch));
            let tools = link.list_tools().await?;
            let session = Arc::new(Session::new(link, &tools, Instant::now()));
            Ok((Connection { session, running, process }, tools))
        };
        let within = self.options.start_timeout;
        match timeout(within, greeting).await {
            Ok(opened) => opened.map_err(Failed::Ended),
            Err(_) => Err(Failed::TimedOut(format!("does not answer within {} ms", within.as_millis()))),
        }
    }

    fn close_current(&mut self) {
        let Some(connection) = self.current.take() else { return };
        if connection.session.link.has_answered() {
            self.restarts.succeeded();
        } else {
            self.restarts.failed(Instant::now());
        }
        tracing::info!(server = self.config.registry_prefix, "MCP session ended");
        self.group.spawn(close(connection, self.options.leave_timeout, self.group.stop_token().clone()));
    }
}

/// Why a connection did not come about.
#[derive(Debug)]
enum Failed {
    /// The server ended it, or answered what it should not.
    Ended(Unavailable),
    /// The harness ended it.
    TimedOut(Unavailable),
}

impl Failed {
    fn words(self) -> Unavailable {
        match self {
            Self::Ended(why) | Self::TimedOut(why) => why,
        }
    }
}

/// Closes a connection once the calls in flight have ended, each step for a bounded time.
async fn close(mut connection: Connection, leave: Duration, stop: CancellationToken) {
    connection.session.link.settled(SETTLE_TIMEOUT, &stop).await;
    if connection.running.close_with_timeout(leave).await.is_err() {
        tracing::warn!("an MCP session ended with a panic");
    }
    if let Some(process) = &mut connection.process {
        // Its owner kills it after `leave`; this only waits for that.
        drop(timeout(leave + LAST_WORDS_TIMEOUT, process.ended()).await);
    }
}

/// In words for people, from the kind of the error and never from its text.
fn describe(error: &ClientInitializeError) -> Unavailable {
    if let ClientInitializeError::TransportError { error, .. } = error {
        return http::describe(error).to_owned();
    }
    if let ClientInitializeError::ConnectionClosed(_) = error {
        return "closed the connection before it greeted".to_owned();
    }
    "does not greet as an MCP server does".to_owned()
}

/// Adds how the process ended, when it did so by itself, and what it said last.
async fn with_last_words(failed: Failed, process: &mut ProcessHandle) -> Unavailable {
    let mut text = match failed {
        Failed::TimedOut(why) => why,
        Failed::Ended(why) => match timeout(LAST_WORDS_TIMEOUT, process.ended()).await {
            Ok(status) => format!("{why} ({status})"),
            Err(_) => why,
        },
    };
    if let Some(words) = process.last_words() {
        text.push_str("; its last words: ");
        text.push_str(&words);
    }
    text
}
