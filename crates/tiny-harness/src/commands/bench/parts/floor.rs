//! The floor: a bare server that makes as many commits of the same size durable in the same kind of store, and decides
//! nothing. What the product takes above it is what its promises cost.

use std::{
    io,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use harness_model::{Timestamp, WorkflowId};
use harness_ports::{EventKind, HistoryEvent, Store, TaskGroup, Write, WriteBatch};
use harness_store::{SqliteStore, StoreOptions};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
};

use super::{Floor, Part, monotonic_ns};
use crate::{
    commands::bench::http::{Wire, framed},
    failure::Failure,
    output,
};

/// All commits of a task, then the answer.
pub(in crate::commands::bench) const TASK: &str = "/task";
/// The same with a line to another process and back in the middle.
pub(in crate::commands::bench) const ECHO: &str = "/echo";
/// One commit, then the first event of a stream.
pub(in crate::commands::bench) const FIRST: &str = "/first";
/// A stream with one event for each `EVENT`; closes after it.
pub(in crate::commands::bench) const FOLLOW: &str = "/follow";
/// One commit, then an event for every follower; answers with the moment of the commit.
pub(in crate::commands::bench) const EVENT: &str = "/event";

/// Bytes of an answer and of an event, about those of the product.
const ANSWER_BYTES: usize = 600;
const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What every connection shares.
struct Shared {
    store: Arc<SqliteStore>,
    floor: Floor,
    program: PathBuf,
    tasks: AtomicU64,
    events: watch::Sender<u64>,
}

/// Serves until the process is killed.
pub(super) async fn run(floor: Floor, program: PathBuf) -> Result<(), Failure> {
    let store = SqliteStore::open(StoreOptions::new(floor.store.clone()))
        .map_err(|e| Failure::general(format!("cannot open the floor's store: {e}")))?;
    let failed = |e: io::Error| Failure::general(format!("the floor cannot listen: {e}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
    output::problem(&format!("serving floor at http://{}", listener.local_addr().map_err(failed)?));
    let (tasks, events) = (AtomicU64::new(0), watch::Sender::new(0));
    let shared = Arc::new(Shared { store, floor, program, tasks, events });
    let connections = TaskGroup::new();
    loop {
        let (stream, _) = listener.accept().await.map_err(failed)?;
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A client that is gone ends its connection.
            let _gone = Connection { shared, echo: None }.serve(stream).await;
        });
    }
}

struct Connection {
    shared: Arc<Shared>,
    echo: Option<Echo>,
}

/// A process that gives back what it is given.
struct Echo {
    _process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream) -> io::Result<()> {
        let mut wire = Wire::new(stream)?;
        while let Some(head) = wire.head().await? {
            wire.sized(head.length.unwrap_or(0)).await?;
            let path = head.first.split(' ').nth(1).unwrap_or_default();
            let answer = match path {
                TASK => {
                    self.task(self.shared.floor.commits).await?;
                    "x".repeat(ANSWER_BYTES)
                }
                ECHO => {
                    let half = self.shared.floor.commits / 2;
                    self.task(half).await?;
                    self.echo().await?;
                    self.task(self.shared.floor.commits - half).await?;
                    "x".repeat(ANSWER_BYTES)
                }
                FIRST => {
                    self.task(1).await?;
                    let event = framed(&"x".repeat(ANSWER_BYTES));
                    wire.write(format!("{STREAM_HEAD}{event}").as_bytes()).await?;
                    wire.write(b"0\r\n\r\n").await?;
                    continue;
                }
                FOLLOW => {
                    let mut events = self.shared.events.subscribe();
                    wire.write(format!("{STREAM_HEAD}{}", framed("begun")).as_bytes()).await?;
                    events.changed().await.map_err(io::Error::other)?;
                    wire.write(framed(&"x".repeat(ANSWER_BYTES)).as_bytes()).await?;
                    wire.write(b"0\r\n\r\n").await?;
                    continue;
                }
                EVENT => {
                    self.task(1).await?;
                    let at = monotonic_ns();
                    self.shared.events.send_modify(|number| *number += 1);
                    at.to_string()
                }
                _ => "ready".to_owned(),
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
            wire.write(head.as_bytes()).await?;
        }
        Ok(())
    }

    /// A task of so many commits.
    async fn task(&self, commits: u64) -> io::Result<()> {
        let number = self.shared.tasks.fetch_add(1, Ordering::Relaxed);
        let workflow_id = WorkflowId::from(format!("floor-{number}"));
        for seq in 0..commits {
            let kind = EventKind::Started { input: json!("x".repeat(self.shared.floor.bytes)) };
            let event = HistoryEvent { at: Timestamp::from_millis(0), kind };
            let mut writes = Vec::new();
            if seq == 0 {
                let (workflow_id, workflow_type) = (workflow_id.clone(), "floor".to_owned());
                writes.push(Write::CreateWorkflow { workflow_id, workflow_type });
            }
            writes.push(Write::AppendJournal { workflow_id: workflow_id.clone(), seq, event });
            let batch = WriteBatch::new(Timestamp::from_millis(0), writes);
            self.shared.store.commit(batch).await.map_err(io::Error::other)?;
        }
        Ok(())
    }

    async fn echo(&mut self) -> io::Result<()> {
        let echo = match &mut self.echo {
            Some(echo) => echo,
            None => self.echo.insert(Echo::start(&self.shared.program)?),
        };
        echo.to.write_all(format!("{}\n", "x".repeat(ANSWER_BYTES)).as_bytes()).await?;
        let mut line = String::new();
        echo.from.read_line(&mut line).await?;
        Ok(())
    }
}

impl Echo {
    fn start(program: &std::path::Path) -> io::Result<Self> {
        let part = Part::Echo.argument().map_err(|_| io::Error::other("no argument"))?;
        let mut process = Command::new(program)
            .args(["bench", "--part", &part])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (to, from) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        Ok(Self { _process: process, to, from: BufReader::new(from) })
    }
}
