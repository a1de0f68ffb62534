//! What a client can be told: bindings, cards, guards, headers, resuming.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt};
use harness_a2a::{
    AddressGuard, AgentClient, CardCache, CardPolicy, ClientError, ClientLimits, ClientOptions, ErrorKind,
    ForbiddenUrl, OwnRequests, PushKey, ResumePolicy, SecurityScheme, StaticToken, StreamItem,
    wire::{
        ListTasksRequest, Message, Part, Role, SendMessageRequest, SendMessageResponse, StreamResponse, Task,
        TaskPushNotificationConfig, TaskState,
    },
};
use harness_model::{ParticipantId, Secret};
use harness_ports::TaskGroup;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    fake_engine::TickingClock,
    receiver::Receiver,
    server::{PATIENCE, Server, install_tls, start, start_with},
};

/// Between a client and a server: changes the card so that it leads here, and cuts streams.
struct Proxy {
    base: String,
    seen: watch::Receiver<Vec<(String, HeaderMap)>>,
}

struct ProxyState {
    target: String,
    base: String,
    card: fn(&mut Value),
    /// Bytes of a stream that come through before it is cut off.
    cut_after: usize,
    http: reqwest::Client,
    seen: watch::Sender<Vec<(String, HeaderMap)>>,
}

impl Proxy {
    async fn before(server: &Server, cut_after: usize, card: fn(&mut Value)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (sender, seen) = watch::channel(Vec::new());
        let (target, http) = (server.base.clone(), server.http.clone());
        let state = ProxyState { target, base: base.clone(), card, cut_after, http, seen: sender };
        let router = Router::new().fallback(pass).with_state(Arc::new(state));
        let group = TaskGroup::new();
        group.spawn(harness_a2a::serve(listener, router, group.stop_token().clone(), group.clone()));
        Self { base, seen }
    }

    /// Method and target of every request but that for the card.
    fn requests(&self) -> Vec<String> {
        self.seen
            .borrow()
            .iter()
            .map(|(line, _)| line.clone())
            .filter(|line| !line.contains("agent-card"))
            .collect()
    }

    fn last_headers(&self) -> HeaderMap {
        self.seen.borrow().last().unwrap().1.clone()
    }
}

async fn pass(State(proxy): State<Arc<ProxyState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().unwrap().as_str().to_owned();
    proxy.seen.send_modify(|seen| seen.push((format!("{} {target}", parts.method), parts.headers.clone())));
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let request =
        proxy.http.request(parts.method, format!("{}{target}", proxy.target)).headers(parts.headers);
    let response = request.body(body).send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    if target.ends_with("agent-card.json") && status == StatusCode::OK {
        let text = response.text().await.unwrap().replace(&proxy.target, &proxy.base);
        let mut card = serde_json::from_str(&text).unwrap();
        (proxy.card)(&mut card);
        return ([(header::ETAG, headers["etag"].clone())], card.to_string()).into_response();
    }
    let stream = headers.get("content-type").is_some_and(|value| value == "text/event-stream");
    let mut left = if stream { proxy.cut_after } else { usize::MAX };
    let chunks = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.unwrap();
        let length = chunk.len().min(left);
        left -= length;
        if length == 0 { Err(std::io::Error::other("cut off")) } else { Ok(chunk.slice(..length)) }
    });
    let mut answer = Response::new(Body::from_stream(chunks));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer.headers_mut().remove("content-length");
    answer.headers_mut().remove("transfer-encoding");
    answer
}

fn only_rest(card: &mut Value) {
    card["supportedInterfaces"].as_array_mut().unwrap().retain(|each| each["protocolBinding"] == "HTTP+JSON");
}

fn as_it_is(_card: &mut Value) {}

fn options() -> ClientOptions {
    install_tls();
    ClientOptions { participant: Some(ParticipantId::from("ada")), ..ClientOptions::default() }
}

fn request(id: &str, text: &str, task: Option<&str>) -> SendMessageRequest {
    let mut message = Message::new(Role::User, vec![Part::text(text)]);
    message.message_id = id.to_owned();
    message.task_id = task.map(str::to_owned);
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

async fn send(client: &AgentClient, request: SendMessageRequest) -> Task {
    match client.send(request).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(_) => panic!("the agent always makes a task"),
    }
}

fn everything() -> ListTasksRequest {
    serde_json::from_value(json!({"pageSize": 5})).unwrap()
}

pub(crate) fn key() -> PushKey {
    PushKey::from_base64(&Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")).unwrap()
}

#[tokio::test]
async fn an_agent_without_json_rpc_is_spoken_to_over_http_json() {
    let server = start_with(|config| {
        config.push_key = Some(key());
        config.push_guard = AddressGuard::allowing(&["127.0.0.1"]).unwrap();
    })
    .await;
    let proxy = Proxy::before(&server, usize::MAX, only_rest).await;
    let client = AgentClient::connect_with(&proxy.base, options()).await.unwrap();
    let task = send(&client, request("1", "hello", None)).await;
    let again = client.send_streaming(request("2", "ask", Some(&task.id))).await.unwrap();
    let items: Vec<StreamItem> = again.try_collect().await.unwrap();
    assert_eq!(items.iter().map(|item| item.seq).collect::<Vec<_>>(), [Some(5), Some(6)]);
    assert_eq!(client.get(&task.id, Some(1)).await.unwrap().history.unwrap().len(), 1);
    assert_eq!(client.list(everything()).await.unwrap().total_size, 1);
    let rest = client.subscribe(&task.id, Some(5)).await.unwrap();
    assert_eq!(rest.count().await, 1);
    let receiver = Receiver::answering(&[200]).await;
    let config: TaskPushNotificationConfig =
        serde_json::from_value(json!({"taskId": task.id, "id": "a/b", "url": receiver.url("/")})).unwrap();
    assert_eq!(client.create_push_config(config).await.unwrap().id.as_deref(), Some("a/b"));
    client.delete_push_config(&task.id, "a/b").await.unwrap();
    assert_eq!(client.cancel(&task.id).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(client.cancel(&task.id).await.unwrap_err().kind(), Some(ErrorKind::TaskNotCancelable));
    let refused = client.get("a/b?c", None).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::TaskNotFound));
    assert!(matches!(refused, ClientError::Refused { code: -32001, .. }), "{refused:?}");
    assert!(
        client.subscribe(&task.id, None).await.unwrap_err().kind() == Some(ErrorKind::UnsupportedOperation)
    );
    assert!(receiver.now().is_empty());
    let id = &task.id;
    let expected = [
        "POST /message:send".to_owned(),
        "POST /message:stream".to_owned(),
        format!("GET /tasks/{id}?historyLength=1"),
        "GET /tasks?pageSize=5".to_owned(),
        format!("GET /tasks/{id}:subscribe"),
        format!("POST /tasks/{id}/pushNotificationConfigs"),
        format!("DELETE /tasks/{id}/pushNotificationConfigs/a%2Fb"),
        format!("POST /tasks/{id}:cancel"),
        format!("POST /tasks/{id}:cancel"),
        "GET /tasks/a%2Fb%3Fc".to_owned(),
        format!("GET /tasks/{id}:subscribe"),
    ];
    assert_eq!(proxy.requests(), expected);
}

#[tokio::test]
async fn a_tenant_of_the_card_travels_with_every_request() {
    let server = start().await;
    for (keep, expected) in [("JSONRPC", "POST /"), ("HTTP+JSON", "POST /acme/message:send")] {
        let card: fn(&mut Value) = match keep {
            "JSONRPC" => |card| card["supportedInterfaces"][0]["tenant"] = json!("acme"),
            _ => |card| {
                only_rest(card);
                card["supportedInterfaces"][0]["tenant"] = json!("acme");
            },
        };
        let proxy = Proxy::before(&server, usize::MAX, card).await;
        let client = AgentClient::connect_with(&proxy.base, options()).await.unwrap();
        send(&client, request(keep, "hello", None)).await;
        assert_eq!(proxy.requests(), [expected]);
    }
}

#[tokio::test]
async fn a_known_card_is_asked_for_by_its_tag() {
    let server = start().await;
    let proxy = Proxy::before(&server, usize::MAX, as_it_is).await;
    let options = ClientOptions { cards: Some(CardCache::new()), ..options() };
    let first = AgentClient::connect_with(&proxy.base, options.clone()).await.unwrap();
    assert!(!proxy.last_headers().contains_key("if-none-match"));
    let second = AgentClient::connect_with(&proxy.base, options).await.unwrap();
    assert!(proxy.last_headers().contains_key("if-none-match"));
    assert_eq!(first.card(), second.card(), "from memory, and the same");
}

#[tokio::test]
async fn headers_are_added_for_a_client_and_for_a_call() {
    let token = StaticToken { secret: Secret::new("t-1"), participant: ParticipantId::from("ada") };
    let schemes = vec![SecurityScheme::Bearer { tokens: vec![token] }];
    let server = start_with(|config| config.security = schemes).await;
    let without = AgentClient::connect_with(&server.base, options()).await.unwrap();
    let refused = without.list(everything()).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Unauthenticated));
    let (name, value) = (header::AUTHORIZATION, HeaderValue::from_static("Bearer t-1"));
    without.with_header(name.clone(), value.clone()).list(everything()).await.unwrap();
    assert!(without.list(everything()).await.is_err(), "only that one call carried it");
    let headers = HeaderMap::from_iter([(name, value)]);
    let with = AgentClient::connect_with(&server.base, ClientOptions { headers, ..options() }).await.unwrap();
    with.list(everything()).await.unwrap();
    let wrong =
        with.with_header(HeaderName::from_static("x-participant-id"), HeaderValue::from_static("bob"));
    assert_eq!(wrong.list(everything()).await.unwrap_err().kind(), Some(ErrorKind::InvalidParams));
    let strict = ClientOptions { policy: CardPolicy::Strict, ..options() };
    let refused = AgentClient::connect_with(&server.base, strict.clone()).await.unwrap_err();
    assert!(matches!(refused, ClientError::SecurityRequired), "{refused:?}");
    AgentClient::connect_with(&start().await.base, strict).await.unwrap();
}

#[tokio::test]
async fn a_guarded_client_calls_only_what_it_may() {
    let server = start().await;
    let forbidden = ClientOptions { guard: Some(AddressGuard::default()), ..options() };
    let error = AgentClient::connect_with(&server.base, forbidden).await.unwrap_err();
    assert!(matches!(error, ClientError::Forbidden(ForbiddenUrl::Address)), "{error:?}");
    let elsewhere: fn(&mut Value) =
        |card| card["supportedInterfaces"][0]["url"] = json!("http://169.254.169.254/");
    let proxy = Proxy::before(&server, usize::MAX, elsewhere).await;
    let guard = Some(AddressGuard::allowing(&["127.0.0.1"]).unwrap());
    let allowed = ClientOptions { guard, ..options() };
    let error = AgentClient::connect_with(&proxy.base, allowed.clone()).await.unwrap_err();
    assert!(matches!(error, ClientError::Forbidden(ForbiddenUrl::Address)), "{error:?}");
    AgentClient::connect_with(&server.base, allowed).await.unwrap().list(everything()).await.unwrap();
}

#[tokio::test]
async fn the_agents_own_client_proves_its_requests() {
    let server = start_with(|config| config.push_key = Some(key())).await;
    let own =
        OwnRequests { key: key(), base_url: server.base.clone(), clock: Arc::new(TickingClock::default()) };
    let me = ClientOptions { participant: Some(ParticipantId::from("me")), ..options() };
    let plain = AgentClient::connect_with(&server.base, me.clone()).await.unwrap();
    let refused = plain.send(request("1", "hello", None)).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::InvalidParams));
    let me = ClientOptions { own_requests: Some(own), ..me };
    for card in [as_it_is as fn(&mut Value), only_rest] {
        let proxy = Proxy::before(&server, usize::MAX, card).await;
        let client = AgentClient::connect_with(&proxy.base, me.clone()).await.unwrap();
        let task = send(&client, request(&proxy.base, "hello", None)).await;
        assert_eq!(client.get(&task.id, Some(3)).await.unwrap().id, task.id);
    }
}

/// A policy that does not wait.
fn at_once() -> ResumePolicy {
    ResumePolicy { attempts_max: 50, first: Duration::from_millis(1), longest: Duration::from_millis(1) }
}

#[tokio::test]
async fn a_stream_that_is_cut_again_and_again_is_heard_whole() {
    let server = start().await;
    let direct = AgentClient::connect_with(&server.base, options()).await.unwrap();
    let whole = direct.send_streaming(request("m", "hello", None)).await.unwrap();
    let whole: Vec<StreamItem> = whole.try_collect().await.unwrap();
    for card in [as_it_is as fn(&mut Value), only_rest] {
        // Long enough for the longest event, too short for all of them.
        let proxy = Proxy::before(&server, 900, card).await;
        let client = AgentClient::connect_with(&proxy.base, options()).await.unwrap();
        let cut = client.send_streaming(request("m", "hello", None)).await.unwrap();
        // Broken off, or ended in the middle of an event.
        let heard = cut.try_collect::<Vec<StreamItem>>().await.map_or(0, |items| items.len());
        assert!(heard < whole.len());
        let stream = client.send_streaming(request("m", "hello", None)).await.unwrap();
        let items: Vec<StreamItem> = stream.resuming(&client, at_once()).try_collect().await.unwrap();
        assert_eq!(items, whole);
        assert!(proxy.requests().len() > 3, "{:?}", proxy.requests());
    }
}

#[tokio::test]
async fn a_stream_gives_up_when_the_agent_stays_away() {
    let server = start().await;
    let client = AgentClient::connect_with(&server.base, options()).await.unwrap();
    let stream = client.send_streaming(request("m", "hold", None)).await.unwrap();
    let policy = ResumePolicy { attempts_max: 3, ..at_once() };
    let mut stream = stream.resuming(&client, policy);
    for expected in [Some(0), Some(1)] {
        assert_eq!(stream.next().await.unwrap().unwrap().seq, expected);
    }
    // The server ends its streams and goes; the turn has not ended.
    drop(tokio::time::timeout(Duration::from_millis(50), server.group.shutdown(PATIENCE)).await);
    let error = tokio::time::timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn what_cannot_be_resumed_is_left_as_it_is() {
    let server = start().await;
    let client = AgentClient::connect_with(&server.base, options()).await.unwrap();
    let stream = client.send_streaming(request("m", "finish", None)).await.unwrap();
    let items: Vec<StreamItem> = stream.resuming(&client, at_once()).try_collect().await.unwrap();
    assert!(matches!(&items.last().unwrap().event, StreamResponse::StatusUpdate(last)
        if last.status.state == TaskState::Completed));
    // A refusal of the agent is no broken connection.
    let limits = ClientLimits { event_bytes_max: 16, ..ClientLimits::default() };
    let narrow =
        AgentClient::connect_with(&server.base, ClientOptions { limits, ..options() }).await.unwrap();
    let stream = narrow.send_streaming(request("n", "hello", None)).await.unwrap();
    let error = stream.resuming(&narrow, at_once()).try_collect::<Vec<StreamItem>>().await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { max: 16 }), "{error:?}");
}
