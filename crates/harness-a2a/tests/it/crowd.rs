//! Many subscribers on one task, each on a connection of its own, one of which does not read. That a server which waits
//! for it would be found out is tried in `blocking_server`.

use std::{net::SocketAddr, time::Duration};

use futures::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream},
};

use crate::{
    api::{Binding, message, outline},
    server::start,
};

const SUBSCRIBERS: usize = 1_000;
/// Answer chunks of the task, and the size of each: more than a connection holds that nobody reads.
pub(crate) const CHUNKS: usize = 32;
pub(crate) const CHUNK_BYTES: usize = 5 << 10;
/// Bytes that the system keeps for a reader that does not read. With much less, loopback hardly moves once it reads.
pub(crate) const STALLED_BUFFER_BYTES: u32 = 16 << 10;

/// How long a line may take: a thousand streams share few processors.
const LINE_TIME: Duration = Duration::from_secs(60);

/// One subscription as bytes on a connection.
pub(crate) struct Subscriber {
    lines: BufReader<TcpStream>,
}

impl Subscriber {
    pub(crate) async fn connect(address: SocketAddr, task_id: &str, buffer_bytes: Option<u32>) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(bytes) = buffer_bytes {
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        let mut stream = socket.connect(address).await.unwrap();
        let head = format!(
            "GET /tasks/{task_id}:subscribe HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\nx-participant-id: ada\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self { lines: BufReader::new(stream) }
    }

    /// The next line; `None` at the end of the connection.
    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        let bytes = tokio::time::timeout(LINE_TIME, read).await.expect("a line in time").unwrap();
        (bytes > 0).then_some(line)
    }

    /// Reads up to the picture of the task, which every subscription begins with.
    pub(crate) async fn begun(mut self) -> Self {
        loop {
            let line = self.line().await.expect("the stream begins");
            if line.starts_with("data: {\"task\"") {
                return self;
            }
        }
    }

    /// What the stream says up to its end: the number of each event and a summary of it.
    pub(crate) async fn told(mut self) -> Vec<(u64, String)> {
        let (mut told, mut number, mut event) = (Vec::new(), None, None);
        while let Some(line) = self.line().await {
            let line = line.trim_end();
            if let Some(id) = line.strip_prefix("id: ") {
                number = Some(id.parse().unwrap());
            } else if let Some(data) = line.strip_prefix("data: ") {
                event = Some(summary(data));
            } else if line == "0" {
                // The last chunk of the body.
                break;
            }
            if let (Some(seq), Some(text)) = (number, &event) {
                told.push((seq, text.clone()));
                (number, event) = (None, None);
            }
        }
        told
    }
}

/// The number of a chunk, or a state. A thousand streams are too much to read as JSON.
fn summary(data: &str) -> String {
    let after = |mark: &str| data.split_once(mark).map(|(_, rest)| rest);
    if let Some(text) = after("\"text\":\"") {
        assert!(text.len() > CHUNK_BYTES, "the chunk is whole");
        return text.split('.').next().unwrap().to_owned();
    }
    let state = after("\"state\":\"").unwrap();
    state.split('"').next().unwrap().to_owned()
}

/// What a stream says of a task that recites.
pub(crate) fn expected() -> Vec<String> {
    let chunks = (0..CHUNKS).map(|n| format!("{n}"));
    chunks.chain(["TASK_STATE_COMPLETED".to_owned()]).collect()
}

/// Both ends of every connection are in this process.
fn allow_connections(count: usize) {
    let wanted = u64::try_from(2 * count + 200).unwrap();
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|files| files < wanted) {
        assert!(maximum.is_none_or(|files| files >= wanted), "{wanted} open files are needed here");
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_subscribers_hear_the_same_and_a_stalled_one_holds_up_nobody() {
    allow_connections(SUBSCRIBERS);
    let server = start().await;
    let params = json!({
        "message": message("m", &format!("recite {CHUNKS} {CHUNK_BYTES}")),
        "configuration": {"returnImmediately": true},
    });
    let task = server.caller(Binding::Rest, "ada").ok("SendMessage", params).await["task"].clone();
    let id = task["id"].as_str().unwrap();
    let ada = server.caller(Binding::Rest, "ada");
    let mut first = ada.open("SubscribeToTask", json!({"id": id}), Some(0)).await;
    assert_eq!(outline(&[first.next().await.unwrap()]), ["1 statusUpdate WORKING"]);

    let stalled = Subscriber::connect(server.address, id, Some(STALLED_BUFFER_BYTES)).await;
    let connect = |_| Subscriber::connect(server.address, id, None);
    let subscribers = join_all((1..SUBSCRIBERS).map(connect)).await;
    let subscribers = join_all(subscribers.into_iter().map(Subscriber::begun)).await;
    let stalled = stalled.begun().await;

    server.engine.release();
    let told = join_all(subscribers.into_iter().map(Subscriber::told)).await;
    let numbers: Vec<u64> = told[0].iter().map(|(seq, _)| *seq).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    for events in &told {
        assert_eq!(events, &told[0]);
    }
    assert_eq!(told[0].iter().map(|(_, text)| text.clone()).collect::<Vec<_>>(), expected());

    // Only now, when the task has long ended, does this one read.
    assert_eq!(stalled.told().await, told[0], "late, and nothing is missing");
}
