//! A tool server over streamable HTTP whose sessions expire.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, header},
    routing::any,
};
use harness_ports::TaskGroup;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    api::{message, state, tool_calls, words},
    rig::{Rig, Server},
};

const SESSION: &str = "mcp-session-id";

/// Calls a read-only tool once; the answer says what came of it.
const SCRIPT: &str = r#"
[[turns]]
when = { last_tool_result = { name = "remote/shop.read", contains = "read it" } }
text = "It worked."

[[turns]]
when = { last_is = "tool_result", shown_contains = "tool.unavailable" }
text = "It is gone."

[[turns]]
when = { text_equals = "read" }
calls = [{ name = "remote/shop.read", arguments = {} }]

[[turns]]
text = "You said: {{message_text}}"
"#;

/// What the server does with sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sessions {
    Known,
    /// The next call finds its session gone; a new one works.
    ExpiredOnce,
    /// Every call finds its session gone, new or not.
    AlwaysExpired,
}

#[derive(Debug)]
struct Inner {
    sessions: Sessions,
    begun: u32,
    /// Methods and session ids in the order they came.
    seen: Vec<(String, Option<String>)>,
}

type Shared = Arc<Mutex<Inner>>;

/// The running tool server.
struct ToolServer {
    inner: Shared,
    url: String,
    _serving: TaskGroup,
}

impl ToolServer {
    async fn start() -> Self {
        let inner = Inner { sessions: Sessions::Known, begun: 0, seen: Vec::new() };
        let inner = Arc::new(Mutex::new(inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let app = Router::new().route("/mcp", any(handle)).with_state(Arc::clone(&inner));
        let serving = TaskGroup::new();
        // Ends with the runtime of the test.
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { inner, url, _serving: serving }
    }

    fn sessions(&self, sessions: Sessions) {
        let mut inner = self.inner.lock().unwrap();
        inner.sessions = sessions;
        inner.seen.clear();
    }

    /// Session ids of the requests with this method.
    fn seen(&self, method: &str) -> Vec<Option<String>> {
        let inner = self.inner.lock().unwrap();
        inner.seen.iter().filter(|(seen, _)| seen == method).map(|(_, session)| session.clone()).collect()
    }

    /// A harness with this server as a plugin's.
    async fn harness(&self) -> (Rig, Server) {
        let servers = json!({"shop": {"type": "streamable-http", "url": self.url}});
        let rig = Rig::new(SCRIPT).plugin("remote", &servers);
        let server = rig.serve().await;
        (rig, server)
    }
}

async fn handle(
    State(inner): State<Shared>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let message: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let session = headers.get(SESSION).map(|value| value.to_str().unwrap().to_owned());
    let name = message["method"].as_str().unwrap_or(method.as_str()).to_owned();
    let mut inner = inner.lock().unwrap();
    inner.seen.push((name.clone(), session));
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    match (name.as_str(), inner.sessions) {
        ("GET", _) => response(405, String::new()),
        ("initialize", _) => {
            inner.begun += 1;
            let result = json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "shop", "version": "1"},
            });
            let mut response = response(200, answer(result));
            let id = format!("session-{}", inner.begun);
            response.headers_mut().insert(SESSION, id.parse().unwrap());
            response
        }
        ("tools/list", _) => {
            let annotations = json!({"readOnlyHint": true});
            let read = json!({"name": "read", "inputSchema": {"type": "object"}, "annotations": annotations});
            response(200, answer(json!({"tools": [read]})))
        }
        ("tools/call", Sessions::AlwaysExpired) => response(404, String::new()),
        ("tools/call", Sessions::ExpiredOnce) => {
            inner.sessions = Sessions::Known;
            response(404, String::new())
        }
        ("tools/call", Sessions::Known) => {
            response(200, answer(json!({"content": [{"type": "text", "text": "read it"}]})))
        }
        _ => response(202, String::new()),
    }
}

fn response(status: u16, body: String) -> Response<Body> {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn an_expired_session_is_begun_again_and_the_call_repeated_once() {
    let tools = ToolServer::start().await;
    let (_rig, server) = tools.harness().await;
    tools.sessions(Sessions::ExpiredOnce);
    let task = server.ada().send(message("m-1", "read")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "It worked."));
    assert_eq!(tools.seen("initialize"), [None], "one new session, asked for without the old id");
    let calls = tools.seen("tools/call");
    assert_eq!(calls, [Some("session-1".to_owned()), Some("session-2".to_owned())]);
    let told = tool_calls(&server.ada(), &task).await;
    assert!(told[0]["duration_ms"].as_u64().unwrap() < 1_000, "{told:?}");
}

#[tokio::test]
async fn a_server_that_forgets_every_session_fails_the_call_without_a_loop() {
    let tools = ToolServer::start().await;
    let (_rig, server) = tools.harness().await;
    tools.sessions(Sessions::AlwaysExpired);
    let task = server.ada().send(message("m-1", "read")).await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(words(&task), "It is gone.", "{:?}", server.process.stderr());
    let (calls, sessions) = (tools.seen("tools/call").len(), tools.seen("initialize").len());
    let told = tool_calls(&server.ada(), &task).await;
    assert_eq!((calls, sessions), (2, 1), "one call, one new session, one repetition");
    assert_eq!(told[0]["state"], "failed");
}
