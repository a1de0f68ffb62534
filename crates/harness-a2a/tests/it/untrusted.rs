//! Any bytes as a request, through the whole server without a socket: it answers in time, in the form of the binding, and
//! never with a failure of its own. Shared with the fuzz targets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Method, Request, Response, Uri, header},
};
use harness_a2a::{A2aConfig, A2aService, router};
use harness_model::{AgentId, ParticipantId, Redactor};
use harness_ports::{IdSource, Store, TaskGroup};
use harness_testkit::MemoryStore;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use crate::fake_engine::{FakeEngine, TickingClock};

/// An answer that takes longer never comes.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// Requests to one server; then a new one takes over, so that memory stays bounded.
const REQUESTS_MAX: usize = 500;
/// Bytes of a refusal: it repeats only a little of what it refuses.
const REFUSAL_BYTES_MAX: usize = 4 << 10;

/// A server that takes requests one after the other.
pub(crate) struct Requests {
    runtime: Runtime,
    server: Option<Server>,
    taken: usize,
}

struct Server {
    router: Router,
    engine: Arc<FakeEngine>,
}

#[derive(Default)]
struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn fresh(&self) -> String {
        self.0.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

impl Server {
    fn new() -> Self {
        let mut config = A2aConfig::new("http://agent.example", AgentId::from("me"));
        config.rate_limit_per_minute = 0;
        config.anonymous = Some(ParticipantId::from("ada"));
        let store: Arc<dyn Store> = MemoryStore::new();
        let engine = FakeEngine::new(Arc::clone(&store), TaskGroup::new());
        let service = A2aService::new(
            config,
            Arc::clone(&engine) as _,
            store,
            Arc::new(TickingClock::default()),
            Arc::new(CountingIds::default()),
            Arc::new(Redactor::default()),
        );
        Self { router: router(service, Router::new()), engine }
    }
}

impl Requests {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { runtime, server: None, taken: 0 }
    }

    /// The bytes as the body of a JSON-RPC request.
    pub(crate) fn json_rpc(&mut self, body: &[u8]) {
        let Some((_, answer)) = self.ask(Method::POST, Uri::from_static("/"), body) else { return };
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
        if let Some(error) = answer.get("error") {
            check_refusal(error, "data");
            assert_ne!(error["code"], -32603, "something failed inside: {answer}");
        }
    }

    /// The bytes as a request of the HTTP+JSON binding: a line with method and path, then the body. Bytes that are no
    /// such line are not a request.
    pub(crate) fn rest(&mut self, bytes: &[u8]) {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let (line, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
        let Some((method, path)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' '))
        else {
            return;
        };
        let (Ok(method), Ok(uri)) = (method.parse::<Method>(), path.parse::<Uri>()) else { return };
        let beside = ["/", "/a2a/v1", "/a2a/v1/", "/.well-known/agent-card.json", "/healthz"];
        if beside.contains(&uri.path()) || !uri.path().starts_with('/') || method == Method::HEAD {
            return;
        }
        let Some((status, answer)) = self.ask(method, uri, body) else { return };
        if status == 200 {
            assert!(answer.is_object() && answer.get("error").is_none(), "{answer}");
            return;
        }
        assert!(matches!(status, 400 | 404 | 405), "{status} {answer}");
        assert_eq!(answer["error"]["code"], status);
        check_refusal(&answer["error"], "details");
    }

    /// The answer; nothing for a stream that has begun well.
    fn ask(&mut self, method: Method, uri: Uri, body: &[u8]) -> Option<(u16, Value)> {
        let Self { runtime, server, taken } = self;
        if *taken == REQUESTS_MAX {
            (*server, *taken) = (None, 0);
        }
        *taken += 1;
        runtime.block_on(async {
            let server = server.get_or_insert_with(Server::new);
            // A task that holds goes on at once: what is asked for here is not patience.
            server.engine.release();
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .header("a2a-version", "1.0")
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_vec()))
                .ok()?;
            let answering = async {
                let response = server.router.clone().oneshot(request).await.expect("handlers do not fail");
                answer(response).await
            };
            tokio::time::timeout(ANSWER_TIME, answering).await.expect("an answer in time")
        })
    }
}

async fn answer(response: Response<Body>) -> Option<(u16, Value)> {
    let status = response.status().as_u16();
    let content_type = response.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
    if content_type == "text/event-stream" {
        let frame = response.into_body().frame().await.expect("a stream says something").expect("a frame");
        let text = String::from_utf8(frame.into_data().expect("data").to_vec()).expect("text");
        assert!(text.contains("data: "), "{text}");
        return None;
    }
    let bytes = response.into_body().collect().await.expect("a whole answer").to_bytes();
    if status >= 400 {
        assert!(bytes.len() <= REFUSAL_BYTES_MAX, "a refusal of {} bytes", bytes.len());
    }
    Some((status, serde_json::from_slice(&bytes).expect("JSON")))
}

fn check_refusal(error: &Value, details: &str) {
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    assert!(error[details].is_array(), "{error}");
    assert!(error.to_string().len() <= REFUSAL_BYTES_MAX, "the refusal is short");
}
