//! A receiver of push notifications on a port of its own.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Uri, header::LOCATION},
    response::{IntoResponse, Response},
};
use harness_ports::TaskGroup;
use http::StatusCode;
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};

use crate::server::PATIENCE;

/// One request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    /// What it was answered with.
    pub(crate) status: u16,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Short form: `3 statusUpdate WORKING`.
    pub(crate) fn outline(&self) -> String {
        let seq = self.header("x-tiny-harness-event-seq").parse().unwrap();
        crate::api::outline(&[(seq, self.body.clone())]).remove(0)
    }
}

pub(crate) struct Receiver {
    pub(crate) base: String,
    shared: Arc<Shared>,
}

struct Shared {
    received: watch::Sender<Vec<Received>>,
    /// Statuses of the next answers; after them, every answer is the last one again.
    answers: Mutex<VecDeque<u16>>,
    redirect: String,
}

impl Receiver {
    /// A receiver that answers with these statuses in turn, and with the last one ever after.
    pub(crate) async fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            received: watch::Sender::new(Vec::new()),
            answers: Mutex::new(statuses.iter().copied().collect()),
            redirect: format!("{base}/elsewhere"),
        });
        let router = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        let group = TaskGroup::new();
        group.spawn(harness_a2a::serve(listener, router, group.stop_token().clone(), group.clone()));
        Self { base, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Answers with this status from now on.
    pub(crate) fn answer(&self, status: u16) {
        *self.shared.answers.lock().unwrap() = VecDeque::from([status]);
    }

    /// Everything that has arrived, once the condition holds for it.
    pub(crate) async fn when(&self, holds: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let mut received = self.shared.received.subscribe();
        let arrived = received.wait_for(|received| holds(received));
        match tokio::time::timeout(PATIENCE, arrived).await {
            Ok(received) => received.unwrap().clone(),
            Err(_) => panic!("what was waited for did not arrive, but {:?}", self.now()),
        }
    }

    /// What has arrived so far.
    pub(crate) fn now(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }
}

async fn receive(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let status = {
        let mut answers = shared.answers.lock().unwrap();
        match answers.len() {
            1 => answers[0],
            _ => answers.pop_front().unwrap_or(200),
        }
    };
    let body = serde_json::from_slice(&body).unwrap();
    let received = Received { path: uri.path().to_owned(), headers, body, status };
    shared.received.send_modify(|all| all.push(received));
    (StatusCode::from_u16(status).unwrap(), [(LOCATION, shared.redirect.clone())]).into_response()
}
