//! A streamable HTTP MCP server that forgets sessions, fails and floods on request.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, StatusCode, header},
    routing::any,
};
use harness_mcp::{ServerConfig, ServerTransport};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

const SESSION: &str = "mcp-session-id";

/// What the server does with tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Answers with JSON.
    Answer,
    /// Answers with an event stream.
    Stream,
    /// Does not know any session.
    NotFound,
    /// Fails with this status.
    Status(u16),
    /// Never answers.
    Hang,
    /// Answers with 40 MiB.
    Flood,
    /// Sends the client elsewhere.
    Redirect,
}

/// One request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The JSON-RPC method, or the HTTP method of a request without a body.
    pub(crate) method: String,
    pub(crate) session: Option<String>,
    pub(crate) authorization: Option<String>,
}

#[derive(Debug)]
struct Inner {
    calls: Calls,
    sessions: u32,
    /// The session the server knows.
    known: Option<String>,
    seen: Vec<Seen>,
}

/// The running server.
pub(crate) struct HttpServer {
    inner: Arc<Mutex<Inner>>,
    url: String,
    task: JoinHandle<()>,
}

impl HttpServer {
    pub(crate) async fn start() -> Self {
        let inner = Inner { calls: Calls::Answer, sessions: 0, known: None, seen: Vec::new() };
        let inner = Arc::new(Mutex::new(inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let app = Router::new().route("/mcp", any(handle)).with_state(inner.clone());
        #[expect(clippy::disallowed_methods, reason = "the test owns the server and aborts it")]
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { inner, url, task }
    }

    pub(crate) fn config(&self) -> ServerConfig {
        let headers = BTreeMap::from([("authorization".to_owned(), "Bearer abc".to_owned())]);
        ServerConfig {
            registry_prefix: "p/h".to_owned(),
            transport: ServerTransport::StreamableHttp { url: self.url.clone(), headers },
        }
    }

    pub(crate) fn calls(&self, calls: Calls) {
        self.inner.lock().unwrap().calls = calls;
    }

    /// Forgets the session, as a restart or an expiry does.
    pub(crate) fn forget(&self) {
        self.inner.lock().unwrap().known = None;
    }

    /// Requests with this method.
    pub(crate) fn seen(&self, method: &str) -> Vec<Seen> {
        self.inner.lock().unwrap().seen.iter().filter(|seen| seen.method == method).cloned().collect()
    }

    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        (&mut self.task).await.unwrap_err();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn handle(
    State(inner): State<Arc<Mutex<Inner>>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let message: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let seen = Seen {
        method: message["method"].as_str().unwrap_or(method.as_str()).to_owned(),
        session: text(SESSION),
        authorization: text("authorization"),
    };
    let (calls, known) = {
        let mut inner = inner.lock().unwrap();
        inner.seen.push(seen.clone());
        (inner.calls, inner.known.is_some() && inner.known == seen.session)
    };
    match seen.method.as_str() {
        "GET" => status(405),
        "DELETE" => status(200),
        "initialize" => initialize(&inner, &message),
        _ if !known => status(404),
        "tools/list" => json_answer(&message, &json!({ "tools": tools() })),
        "tools/call" => tool_call(calls, &message).await,
        _ => status(202),
    }
}

fn initialize(inner: &Mutex<Inner>, message: &Value) -> Response<Body> {
    let mut inner = inner.lock().unwrap();
    inner.sessions += 1;
    let session = format!("session-{}", inner.sessions);
    inner.known = Some(session.clone());
    let result = json!({
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "fake", "version": "1" },
    });
    let mut response = json_answer(message, &result);
    response.headers_mut().insert(SESSION, session.parse().unwrap());
    response
}

async fn tool_call(calls: Calls, message: &Value) -> Response<Body> {
    let result = json!({ "content": [{ "type": "text", "text": "done" }] });
    match calls {
        Calls::Answer => json_answer(message, &result),
        Calls::Stream => {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let body = format!("event: message\ndata: {answer}\n\n");
            response(200, "text/event-stream", body)
        }
        Calls::NotFound => status(404),
        Calls::Status(code) => status(code),
        Calls::Hang => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            status(200)
        }
        Calls::Flood => {
            let text = "z".repeat(40 * 1024 * 1024);
            json_answer(message, &json!({ "content": [{ "type": "text", "text": text }] }))
        }
        Calls::Redirect => {
            let mut response = status(307);
            response.headers_mut().insert(header::LOCATION, "http://127.0.0.1:1/elsewhere".parse().unwrap());
            response
        }
    }
}

fn tools() -> Value {
    let schema = json!({ "type": "object" });
    json!([
        { "name": "read", "inputSchema": schema, "annotations": { "readOnlyHint": true } },
        { "name": "act", "inputSchema": schema },
    ])
}

fn json_answer(message: &Value, result: &Value) -> Response<Body> {
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    response(200, "application/json", answer.to_string())
}

fn status(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

fn response(code: u16, content_type: &str, body: String) -> Response<Body> {
    let mut response = status(code);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type.parse().unwrap());
    *response.body_mut() = Body::from(body);
    response
}
