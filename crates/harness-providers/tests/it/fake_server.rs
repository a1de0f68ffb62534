//! A server that answers as it is told, in pieces, and checks every request it sees.

mod rules;

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, Request, State},
    response::Response,
};
use futures::{StreamExt, stream};
use harness_ports::TaskGroup;
use serde_json::Value;
use tokio::net::TcpListener;

/// What the key of every test is.
pub(crate) const KEY: &str = "test-key-0123456789";

/// One piece of a response body.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Bytes, sent as one chunk.
    Bytes(Vec<u8>),
    /// Nothing more, and the connection stays open.
    Stall,
    /// The connection is torn down.
    Reset,
}

/// One response.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) pieces: Vec<Piece>,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, pieces: vec![Piece::Bytes(body.into())] }
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "application/json", body)
    }

    /// A stream whose events have these data.
    pub(crate) fn events(data: &[&str]) -> Self {
        let body: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
        Self::new(200, "text/event-stream", body)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    /// The same bytes, one at a time.
    pub(crate) fn byte_by_byte(mut self) -> Self {
        let split = |piece: Piece| match piece {
            Piece::Bytes(bytes) => bytes.into_iter().map(|byte| Piece::Bytes(vec![byte])).collect(),
            Piece::Stall | Piece::Reset => vec![piece],
        };
        self.pieces = self.pieces.into_iter().flat_map(split).collect();
        self
    }
}

#[derive(Debug)]
struct Shared {
    /// One for each request; the last one for all that follow.
    replies: Vec<Reply>,
    /// What the key has to be.
    key: Option<&'static str>,
    seen: Mutex<Vec<String>>,
    peers: Mutex<BTreeSet<SocketAddr>>,
    violations: Mutex<Vec<String>>,
    /// Held by every response body: told when a client went away.
    bodies: Arc<tokio::sync::Notify>,
}

/// A running fake server.
#[derive(Debug)]
pub(crate) struct FakeServer {
    pub(crate) base_url: String,
    shared: Arc<Shared>,
    group: TaskGroup,
}

impl FakeServer {
    /// A server that gives every request this reply and expects [`KEY`].
    pub(crate) async fn start(reply: Reply) -> Self {
        Self::expecting(vec![reply], Some(KEY)).await
    }

    /// A server that gives the first request the first reply, and so on; the last one is repeated.
    pub(crate) async fn start_with(replies: Vec<Reply>) -> Self {
        Self::expecting(replies, Some(KEY)).await
    }

    /// A server that expects no key.
    pub(crate) async fn start_open(reply: Reply) -> Self {
        Self::expecting(vec![reply], None).await
    }

    async fn expecting(replies: Vec<Reply>, key: Option<&'static str>) -> Self {
        let shared = Arc::new(Shared {
            replies,
            key,
            seen: Mutex::default(),
            peers: Mutex::default(),
            violations: Mutex::default(),
            bodies: Arc::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        let group = TaskGroup::new();
        let stop = group.stop_token().clone();
        group.spawn(async move {
            // Ends with the test; connections end with their clients.
            let _ended = stop.run_until_cancelled(async { axum::serve(listener, app).await }).await;
        });
        Self { base_url, shared, group }
    }

    /// The bodies of the requests so far. Fails when one of them broke a rule of the wire.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.bodies().iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// The same, byte for byte.
    #[track_caller]
    pub(crate) fn bodies(&self) -> Vec<String> {
        let violations = self.shared.violations.lock().unwrap();
        assert!(violations.is_empty(), "requests break the rules: {violations:#?}");
        self.shared.seen.lock().unwrap().clone()
    }

    /// How many connections the requests came over.
    pub(crate) fn connections(&self) -> usize {
        self.shared.peers.lock().unwrap().len()
    }

    /// Waits until a response body is no longer read.
    pub(crate) async fn client_gone(&self) {
        self.shared.bodies.notified().await;
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.group.stop_token().cancel();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    shared.peers.lock().unwrap().insert(peer);
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let violations = rules::violations(&parts, &bytes, shared.key);
    shared.violations.lock().unwrap().extend(violations);
    let number = {
        let mut seen = shared.seen.lock().unwrap();
        seen.push(String::from_utf8_lossy(&bytes).into_owned());
        seen.len() - 1
    };
    let reply = &shared.replies[number.min(shared.replies.len() - 1)];
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let guard = Gone(Arc::clone(&shared.bodies));
    let pieces = stream::iter(reply.pieces.clone()).then(move |piece| {
        let _held = &guard;
        send(piece)
    });
    response.body(Body::from_stream(pieces)).unwrap()
}

async fn send(piece: Piece) -> Result<Bytes, std::io::Error> {
    match piece {
        Piece::Bytes(bytes) => {
            // Lets the connection write what it has, so that pieces stay apart.
            tokio::task::yield_now().await;
            Ok(bytes.into())
        }
        Piece::Stall => std::future::pending().await,
        Piece::Reset => {
            tokio::task::yield_now().await;
            Err(std::io::Error::other("reset"))
        }
    }
}

/// Tells that a body was dropped.
#[derive(Debug)]
struct Gone(Arc<tokio::sync::Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
