//! A small client over JSON-RPC: what a terminal, a test or another part of the harness needs to talk to an agent.

mod card;
mod error;
mod event_stream;
mod http;
mod sse_decoder;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ::http::{HeaderMap, HeaderName, HeaderValue};
use a2a::jsonrpc::methods as m;
use a2a::{AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, SendMessageResponse, Task};
use harness_model::{ParticipantId, names};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use error::ClientError;
pub use event_stream::{EventStream, StreamItem};

/// Bounds of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Time to connect.
    pub connect: Duration,
    /// Time for a whole call that does not wait for an agent's turn.
    pub call: Duration,
    /// Time for a blocking send, which waits for an agent's turn.
    pub send: Duration,
    /// Time without a byte on a stream; agents send comments more often than that.
    pub idle: Duration,
    /// Bytes of an agent card.
    pub card_bytes_max: usize,
    /// Bytes of any other response.
    pub response_bytes_max: usize,
    /// Bytes of one event of a stream.
    pub event_bytes_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(60),
            send: Duration::from_secs(600),
            idle: Duration::from_secs(90),
            card_bytes_max: 256 << 10,
            response_bytes_max: 16 << 20,
            event_bytes_max: 4 << 20,
        }
    }
}

/// A client of one agent. Clones share the connections.
#[derive(Clone, Debug)]
pub struct AgentClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: reqwest::Client,
    card: AgentCard,
    endpoint: reqwest::Url,
    headers: HeaderMap,
    participant: Option<ParticipantId>,
    limits: ClientLimits,
    next_id: AtomicU64,
}

impl AgentClient {
    /// Reads the card of the agent at `base_url` and takes its JSON-RPC interface.
    ///
    /// Follows no redirect and uses no proxy. The process must have installed a TLS provider.
    /// Errors: `Unreachable`, `TooLarge`, `InvalidResponse` for what is not a card, `NoInterface`,
    /// `UnsupportedExtension` when the agent requires one that this client does not know.
    pub async fn connect(
        base_url: &str,
        participant: Option<ParticipantId>,
        limits: ClientLimits,
    ) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder()
            .connect_timeout(limits.connect)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(ClientError::unreachable)?;
        let card = card::fetch(&http, base_url, &limits).await?;
        let endpoint = card::json_rpc_endpoint(&card)?;
        let headers = headers(&card, participant.as_ref())?;
        let next_id = AtomicU64::new(1);
        let shared = Shared { http, card, endpoint, headers, participant, limits, next_id };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The agent's card.
    pub fn card(&self) -> &AgentCard {
        &self.shared.card
    }

    /// Sends a message; unless the request says otherwise, waits for the end of the turn.
    /// Repeating a request after an error is safe with agents that recognise a message by its id.
    pub async fn send(&self, request: SendMessageRequest) -> Result<SendMessageResponse, ClientError> {
        let params = self.message_params(request)?;
        self.call(m::SEND_MESSAGE, params, self.shared.limits.send).await
    }

    /// Sends a message and streams what comes of it. Dropping the stream closes it; the agent works on.
    pub async fn send_streaming(&self, request: SendMessageRequest) -> Result<EventStream, ClientError> {
        let params = self.message_params(request)?;
        self.stream(m::SEND_STREAMING_MESSAGE, params, None).await
    }

    /// A task as it is now, with its newest messages: as many as asked for, or what the agent finds fitting.
    pub async fn get(&self, task_id: &str, history_length: Option<u32>) -> Result<Task, ClientError> {
        let mut params = json!({"id": task_id});
        if let Some(length) = history_length {
            params["historyLength"] = length.into();
        }
        self.call(m::GET_TASK, params, self.shared.limits.call).await
    }

    /// One page of this participant's tasks.
    pub async fn list(&self, request: ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        let params = serde_json::to_value(request).map_err(ClientError::invalid_request)?;
        self.call(m::LIST_TASKS, params, self.shared.limits.call).await
    }

    /// Cancels a task; the task once it has ended.
    pub async fn cancel(&self, task_id: &str) -> Result<Task, ClientError> {
        self.call(m::CANCEL_TASK, json!({"id": task_id}), self.shared.limits.call).await
    }

    /// Streams a task: from now on, or what follows the event with number `after`.
    pub async fn subscribe(&self, task_id: &str, after: Option<u64>) -> Result<EventStream, ClientError> {
        self.stream(m::SUBSCRIBE_TO_TASK, json!({"id": task_id}), after).await
    }

    /// The request's parameters, with the participant asserted in the message as well as in the header.
    fn message_params(&self, mut request: SendMessageRequest) -> Result<Value, ClientError> {
        if let Some(participant) = &self.shared.participant {
            let metadata = request.message.metadata.get_or_insert_with(HashMap::new);
            metadata.entry(names::PARTICIPANT_KEY.to_owned()).or_insert_with(|| participant.as_str().into());
        }
        serde_json::to_value(request).map_err(ClientError::invalid_request)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        time: Duration,
    ) -> Result<T, ClientError> {
        let exchange = async {
            let (id, response) = self.post(method, params, None).await?;
            let bytes = http::read_capped(response, self.shared.limits.response_bytes_max).await?;
            http::result(&bytes, &id)
        };
        let value =
            tokio::time::timeout(time, exchange).await.map_err(|_| ClientError::TimedOut { time })??;
        serde_json::from_value(value).map_err(ClientError::invalid_response)
    }

    async fn stream(
        &self,
        method: &str,
        params: Value,
        after: Option<u64>,
    ) -> Result<EventStream, ClientError> {
        let limits = self.shared.limits;
        let time = limits.call;
        let opened = async {
            let (id, response) = self.post(method, params, after).await?;
            if http::is_event_stream(&response) {
                return Ok(EventStream::new(response, id, &limits));
            }
            // An agent that refuses answers with plain JSON.
            let bytes = http::read_capped(response, limits.response_bytes_max).await?;
            let result = http::result(&bytes, &id)?;
            Err(ClientError::invalid_response(format!(
                "no stream but a result of {} bytes",
                result.to_string().len()
            )))
        };
        tokio::time::timeout(time, opened).await.map_err(|_| ClientError::TimedOut { time })?
    }

    async fn post(
        &self,
        method: &str,
        params: Value,
        after: Option<u64>,
    ) -> Result<(Value, reqwest::Response), ClientError> {
        let shared = &self.shared;
        let id = Value::from(shared.next_id.fetch_add(1, Ordering::Relaxed));
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut request = shared.http.post(shared.endpoint.clone()).headers(shared.headers.clone());
        if let Some(seq) = after {
            request = request.header("last-event-id", seq);
        }
        let sent = request.body(body.to_string()).send().await.map_err(ClientError::unreachable)?;
        let response = http::accepted(sent, shared.limits.response_bytes_max).await?;
        Ok((id, response))
    }
}

/// Headers of every request: the version, the extensions both sides know, and who asks.
fn headers(card: &AgentCard, participant: Option<&ParticipantId>) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert("a2a-version", HeaderValue::from_static(a2a::VERSION));
    let known = card::known_extensions(card).join(", ");
    if !known.is_empty() {
        let value = HeaderValue::from_str(&known).map_err(ClientError::invalid_request)?;
        headers.insert("a2a-extensions", value);
    }
    if let Some(id) = participant {
        let value = HeaderValue::from_str(id.as_str()).map_err(ClientError::invalid_request)?;
        headers.insert(HeaderName::from_static(names::PARTICIPANT_HEADER), value);
    }
    Ok(headers)
}
