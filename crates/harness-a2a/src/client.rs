//! A client: what a terminal, a test or another part of the harness needs to talk to an agent, over JSON-RPC or, where
//! the agent has no such interface, HTTP+JSON.

mod card;
mod card_cache;
mod error;
mod event_stream;
mod exchange;
mod http;
mod lenient;
mod operation;
mod options;
mod purge;
mod resume;
mod sse_decoder;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use ::http::{HeaderMap, HeaderName, HeaderValue};
use a2a::{
    AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, SendMessageResponse, Task,
    TaskPushNotificationConfig,
};
use harness_model::{ParticipantId, Secret, names};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use card_cache::CardCache;
pub use error::ClientError;
pub use event_stream::{EventStream, StreamItem};
pub use options::{CardPolicy, ClientLimits, ClientOptions, OwnRequests};
pub use purge::purge_task;
pub use resume::ResumePolicy;

use crate::address_guard;
use card::Endpoint;
use operation::Operation;

/// A client of one agent. Clones share the connections.
#[derive(Clone, Debug)]
pub struct AgentClient {
    shared: Arc<Shared>,
    /// Of every request of this clone.
    headers: HeaderMap,
}

#[derive(Debug)]
struct Shared {
    http: reqwest::Client,
    card: AgentCard,
    endpoint: Endpoint,
    options: ClientOptions,
    next_id: AtomicU64,
}

impl AgentClient {
    /// A client of the agent at `base_url` with the options' defaults. See [`AgentClient::connect_with`].
    pub async fn connect(
        base_url: &str,
        participant: Option<ParticipantId>,
        limits: ClientLimits,
    ) -> Result<Self, ClientError> {
        Self::connect_with(base_url, ClientOptions { participant, limits, ..ClientOptions::default() }).await
    }

    /// Reads the card of the agent at `base_url` and takes its JSON-RPC interface, or else the HTTP+JSON one.
    ///
    /// Follows no redirect and uses no proxy. The process must have installed a TLS provider.
    /// Errors: `Unreachable`, `TooLarge`, `InvalidResponse` for what is not a card, `NoInterface`, `Forbidden` when the
    /// options' guard forbids an address, `UnsupportedExtension` and `SecurityRequired` as the options' policy says.
    pub async fn connect_with(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let connect = options.limits.connect;
        let builder = match &options.guard {
            Some(guard) => guard.client(connect),
            None => address_guard::client_builder(connect),
        };
        let http = builder.build().map_err(ClientError::unreachable)?;
        let card = card::fetch(&http, base_url, &options).await?;
        let endpoint = Endpoint::of(&card, options.guard.as_ref())?;
        let headers = headers(&card, &options)?;
        let shared = Shared { http, card, endpoint, options, next_id: AtomicU64::new(1) };
        Ok(Self { shared: Arc::new(shared), headers })
    }

    /// The agent's card.
    pub fn card(&self) -> &AgentCard {
        &self.shared.card
    }

    /// The same client whose requests carry this header too, in place of one with the same name.
    pub fn with_header(&self, name: HeaderName, value: HeaderValue) -> Self {
        let mut headers = self.headers.clone();
        headers.insert(name, value);
        Self { shared: Arc::clone(&self.shared), headers }
    }

    /// The same client, signed in with a bearer token.
    /// Errors: `InvalidRequest` when the token holds characters that no header carries.
    pub fn signed_in(&self, token: &Secret) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
        let mut value = value.map_err(ClientError::invalid_request)?;
        value.set_sensitive(true);
        Ok(self.with_header(::http::header::AUTHORIZATION, value))
    }

    /// Sends a message; unless the request says otherwise, waits for the end of the turn.
    /// Repeating a request after an error is safe with agents that recognise a message by its id.
    pub async fn send(&self, request: SendMessageRequest) -> Result<SendMessageResponse, ClientError> {
        let params = self.message_params(request)?;
        self.call(Operation::SendMessage, params, self.shared.options.limits.send).await
    }

    /// Sends a message and streams what comes of it. Dropping the stream closes it; the agent works on.
    pub async fn send_streaming(&self, request: SendMessageRequest) -> Result<EventStream, ClientError> {
        let params = self.message_params(request)?;
        self.stream(Operation::SendStreamingMessage, params, None).await
    }

    /// A task as it is now, with its newest messages: as many as asked for, or what the agent finds fitting.
    pub async fn get(&self, task_id: &str, history_length: Option<u32>) -> Result<Task, ClientError> {
        let mut params = json!({"id": task_id});
        if let Some(length) = history_length {
            params["historyLength"] = length.into();
        }
        self.call(Operation::GetTask, params, self.call_time()).await
    }

    /// One page of this participant's tasks.
    pub async fn list(&self, request: ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        let params = serde_json::to_value(request).map_err(ClientError::invalid_request)?;
        self.call(Operation::ListTasks, params, self.call_time()).await
    }

    /// Cancels a task; the task once it has ended.
    pub async fn cancel(&self, task_id: &str) -> Result<Task, ClientError> {
        self.call(Operation::CancelTask, json!({"id": task_id}), self.call_time()).await
    }

    /// Streams a task: from now on, or what follows the event with number `after`.
    pub async fn subscribe(&self, task_id: &str, after: Option<u64>) -> Result<EventStream, ClientError> {
        self.stream(Operation::SubscribeToTask, json!({"id": task_id}), after).await
    }

    /// Registers a receiver of push notifications for the config's task; the configuration as the agent keeps it.
    pub async fn create_push_config(
        &self,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        let params = serde_json::to_value(config).map_err(ClientError::invalid_request)?;
        self.call(Operation::CreatePushConfig, params, self.call_time()).await
    }

    /// Removes a receiver of push notifications.
    pub async fn delete_push_config(&self, task_id: &str, config_id: &str) -> Result<(), ClientError> {
        let params = json!({"taskId": task_id, "id": config_id});
        self.call(Operation::DeletePushConfig, params, self.call_time()).await.map(|_: Value| ())
    }

    fn call_time(&self) -> Duration {
        self.shared.options.limits.call
    }

    /// The request's parameters, with the participant asserted in the message as well as in the header.
    fn message_params(&self, mut request: SendMessageRequest) -> Result<Value, ClientError> {
        if let Some(participant) = &self.shared.options.participant {
            let metadata = request.message.metadata.get_or_insert_with(HashMap::new);
            metadata.entry(names::PARTICIPANT_KEY.to_owned()).or_insert_with(|| participant.as_str().into());
        }
        serde_json::to_value(request).map_err(ClientError::invalid_request)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        operation: Operation,
        params: Value,
        time: Duration,
    ) -> Result<T, ClientError> {
        let exchange = async {
            let (framing, response) = self.exchange(operation, params, None).await?;
            let bytes = http::read_capped(response, self.shared.options.limits.response_bytes_max).await?;
            framing.result(&bytes)
        };
        let mut value =
            tokio::time::timeout(time, exchange).await.map_err(|_| ClientError::TimedOut { time })??;
        lenient::complete(operation, &mut value);
        serde_json::from_value(value).map_err(ClientError::invalid_response)
    }

    async fn stream(
        &self,
        operation: Operation,
        params: Value,
        after: Option<u64>,
    ) -> Result<EventStream, ClientError> {
        let limits = self.shared.options.limits;
        let time = limits.call;
        let opened = async {
            let (framing, response) = self.exchange(operation, params, after).await?;
            if http::is_event_stream(&response) {
                return Ok(EventStream::new(response, framing, &limits));
            }
            // An agent that refuses answers with plain JSON.
            let bytes = http::read_capped(response, limits.response_bytes_max).await?;
            framing.result(&bytes)?;
            let text = format!("no stream but a result of {} bytes", bytes.len());
            Err(ClientError::invalid_response(text))
        };
        tokio::time::timeout(time, opened).await.map_err(|_| ClientError::TimedOut { time })?
    }
}

/// Headers of every request: the version, the extensions both sides know, who asks, and what the options add.
fn headers(card: &AgentCard, options: &ClientOptions) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert(
        "accept",
        HeaderValue::from_static("application/json, application/a2a+json, text/event-stream"),
    );
    headers.insert("a2a-version", HeaderValue::from_static(a2a::VERSION));
    let known = card::known_extensions(card).join(", ");
    if !known.is_empty() {
        let value = HeaderValue::from_str(&known).map_err(ClientError::invalid_request)?;
        headers.insert("a2a-extensions", value);
    }
    if let Some(id) = &options.participant {
        let value = HeaderValue::from_str(id.as_str()).map_err(ClientError::invalid_request)?;
        headers.insert(HeaderName::from_static(names::PARTICIPANT_HEADER), value);
    }
    for (name, value) in &options.headers {
        headers.insert(name, value.clone());
    }
    Ok(headers)
}
