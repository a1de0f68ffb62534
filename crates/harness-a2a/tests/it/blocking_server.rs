//! A server as it must not be: it writes to one subscriber after the other and waits for each. The test of the crowd has to
//! fail on it, or it would say nothing about any other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{join, join_all};
use harness_ports::TaskGroup;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};

use crate::{
    crowd::{CHUNK_BYTES, CHUNKS, STALLED_BUFFER_BYTES, Subscriber, expected},
    server::listen,
};

/// Subscribers of it.
const SUBSCRIBERS: usize = 20;
/// Whoever is held up after this long stays so until somebody reads.
const HELD_UP: Duration = Duration::from_secs(2);

struct BlockingServer {
    address: std::net::SocketAddr,
    release: Arc<Notify>,
    /// Writes that have ended.
    written: Arc<AtomicUsize>,
    _group: TaskGroup,
}

impl BlockingServer {
    fn start() -> Self {
        let listener = listen();
        let address = listener.local_addr().unwrap();
        let (release, written) = (Arc::new(Notify::new()), Arc::<AtomicUsize>::default());
        let (released, count) = (Arc::clone(&release), Arc::clone(&written));
        let group = TaskGroup::new();
        group.spawn(async move {
            let mut subscribers = Vec::new();
            for _ in 0..SUBSCRIBERS {
                let (mut stream, _) = listener.accept().await.unwrap();
                read_head(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nid: 1\ndata: {\"task\":{}}\n\n").await.unwrap();
                subscribers.push(stream);
            }
            released.notified().await;
            for event in events() {
                for stream in &mut subscribers {
                    stream.write_all(event.as_bytes()).await.unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        Self { address, release, written, _group: group }
    }

    fn written(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

/// What a task that recites would be told as; the last one ends the stream.
fn events() -> Vec<String> {
    let chunk =
        |n: usize| format!("id: {}\ndata: {{\"text\":\"{n:.<width$}\"}}\n\n", n + 2, width = CHUNK_BYTES);
    let last = format!("id: {}\ndata: {{\"state\":\"TASK_STATE_COMPLETED\"}}\n\n0\n", CHUNKS + 2);
    (0..CHUNKS).map(chunk).chain([last]).collect()
}

/// Everybody has subscribed; the first one is apart.
async fn subscribed(server: &BlockingServer) -> (Subscriber, Vec<Subscriber>) {
    let first = Subscriber::connect(server.address, "t", Some(STALLED_BUFFER_BYTES)).await.begun().await;
    let mut others = Vec::new();
    for _ in 1..SUBSCRIBERS {
        others.push(Subscriber::connect(server.address, "t", None).await.begun().await);
    }
    (first, others)
}

#[tokio::test]
async fn one_that_stalls_holds_up_everybody_on_a_server_that_waits() {
    let server = BlockingServer::start();
    let (stalled, others) = subscribed(&server).await;
    server.release.notify_one();
    let mut told = std::pin::pin!(join_all(others.into_iter().map(Subscriber::told)));
    let held_up = timeout(HELD_UP, told.as_mut()).await;
    assert!(
        held_up.is_err(),
        "what one connection holds unread is enough for all events: the crowd proves nothing"
    );
    assert!(server.written() < CHUNKS * SUBSCRIBERS, "{}", server.written());
    assert_eq!(server.written() % SUBSCRIBERS, 0, "it waits for the one that stalls");

    // It was that one and nothing else: when it reads, all hear everything.
    let (told, late) = join(told, stalled.told()).await;
    for events in told.iter().chain([&late]) {
        assert_eq!(events.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>(), expected());
    }
}
