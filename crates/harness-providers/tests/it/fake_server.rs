//! A server that answers as it is told, in pieces, and checks every request it sees.

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
    reply: Reply,
    /// What the `authorization` header has to be.
    authorization: Option<String>,
    seen: Mutex<Vec<Value>>,
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
        Self::expecting(reply, Some(format!("Bearer {KEY}"))).await
    }

    /// A server that expects no key.
    pub(crate) async fn start_open(reply: Reply) -> Self {
        Self::expecting(reply, None).await
    }

    async fn expecting(reply: Reply, authorization: Option<String>) -> Self {
        let shared = Arc::new(Shared {
            reply,
            authorization,
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
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut violations = violations(&body);
    if (parts.method.as_str(), parts.uri.path()) != ("POST", "/v1/chat/completions") {
        violations.push(format!("{} {}", parts.method, parts.uri));
    }
    let authorization = parts.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    if authorization != shared.authorization {
        violations.push(format!("authorization {authorization:?}"));
    }
    for header in ["openai-organization", "openai-project", "cookie"] {
        if parts.headers.contains_key(header) {
            violations.push(format!("header {header}"));
        }
    }
    shared.violations.lock().unwrap().extend(violations);
    shared.seen.lock().unwrap().push(body);
    let mut response = Response::builder().status(shared.reply.status);
    for (name, value) in &shared.reply.headers {
        response = response.header(*name, value);
    }
    let guard = Gone(Arc::clone(&shared.bodies));
    let pieces = stream::iter(shared.reply.pieces.clone()).then(move |piece| {
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

/// What every request on this wire has to keep to.
fn violations(body: &Value) -> Vec<String> {
    let known = [
        "model",
        "messages",
        "tools",
        "response_format",
        "max_tokens",
        "reasoning_effort",
        "stream",
        "stream_options",
    ];
    let mut found = Vec::new();
    let keys = body.as_object().into_iter().flat_map(|map| map.keys());
    found.extend(keys.filter(|key| !known.contains(&key.as_str())).map(|key| format!("unknown key {key}")));
    if body["max_tokens"].as_u64().is_none() || body["stream"].as_bool().is_none() {
        found.push("max_tokens or stream is missing".to_owned());
    }
    if body["stream"].as_bool() != Some(body.get("stream_options").is_some()) {
        found.push("stream_options goes with stream".to_owned());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        check_name(&tool["function"]["name"], &mut found);
    }
    check_results(body["messages"].as_array().map_or(&[], Vec::as_slice), &mut found);
    found
}

fn check_name(name: &Value, found: &mut Vec<String>) {
    let valid = name.as_str().is_some_and(|name| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    });
    if !valid {
        found.push(format!("tool name {name}"));
    }
}

/// The results of an assistant message's calls follow it directly, exactly one each.
fn check_results(messages: &[Value], found: &mut Vec<String>) {
    let mut open = BTreeSet::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
            if !open.remove(&id) {
                found.push(format!("unexpected result for {id:?}"));
            }
            continue;
        }
        if !open.is_empty() {
            found.push(format!("no results for {open:?}"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            check_name(&call["function"]["name"], found);
            if !call["function"]["arguments"].is_string() {
                found.push("arguments are not text".to_owned());
            }
            open.insert(call["id"].as_str().unwrap_or_default().to_owned());
        }
    }
    if !open.is_empty() {
        found.push(format!("no results for {open:?}"));
    }
}
