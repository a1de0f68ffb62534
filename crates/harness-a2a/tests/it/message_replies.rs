//! Agents that answer with a message and make no task: this one never does, and the client takes it from others.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt, stream};
use harness_a2a::{
    AgentClient, ClientError, ClientLimits, ResumePolicy, StreamItem,
    wire::{SendMessageRequest, SendMessageResponse, StreamResponse},
};
use harness_ports::TaskGroup;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    api::{BOTH, Binding, brief, message},
    server::{PATIENCE, install_tls, start},
};

/// What the peer does after its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Close,
    KeepOpen,
    SayMore,
}

/// An agent that answers every message with a message, over one binding.
struct Peer {
    base: String,
    paths: Arc<Mutex<Vec<String>>>,
    _group: TaskGroup,
}

#[derive(Clone)]
struct Shared {
    binding: Binding,
    base: String,
    after: After,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    async fn start(binding: Binding, after: After) -> Self {
        install_tls();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let paths = Arc::<Mutex<Vec<String>>>::default();
        let shared = Shared { binding, base: base.clone(), after, paths: Arc::clone(&paths) };
        let router = Router::new().fallback(answer).with_state(shared);
        let group = TaskGroup::new();
        group.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, paths, _group: group }
    }

    async fn client(&self) -> AgentClient {
        AgentClient::connect(&self.base, None, ClientLimits::default()).await.unwrap()
    }

    fn asked(&self) -> usize {
        self.paths.lock().unwrap().len()
    }
}

async fn answer(State(shared): State<Shared>, uri: Uri, body: Bytes) -> Response {
    if uri.path().ends_with("agent-card.json") {
        let name = if shared.binding == Binding::JsonRpc { "JSONRPC" } else { "HTTP+JSON" };
        let interface = json!({"url": shared.base, "protocolBinding": name, "protocolVersion": "1.0"});
        let card = json!({"name": "talker", "description": "", "version": "1", "skills": [],
            "capabilities": {"streaming": true}, "supportedInterfaces": [interface]});
        return card.to_string().into_response();
    }
    shared.paths.lock().unwrap().push(uri.path().to_owned());
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (asked, streams) = match shared.binding {
        Binding::JsonRpc => (&request["params"], request["method"] == "SendStreamingMessage"),
        Binding::Rest => (&request, uri.path() == "/message:stream"),
    };
    let words = asked["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    let context = asked["message"].get("contextId").cloned().unwrap_or(json!("c-1"));
    let said = json!({"message": {"messageId": "r", "role": "ROLE_AGENT", "contextId": context,
        "parts": [{"text": format!("You said: {words}")}]}});
    let framed = |result: &Value| match shared.binding {
        Binding::JsonRpc => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string(),
        Binding::Rest => result.to_string(),
    };
    if !streams {
        return ([("content-type", "application/json")], framed(&said)).into_response();
    }
    let frame = |result: &Value| Ok::<_, Infallible>(Bytes::from(format!("data: {}\n\n", framed(result))));
    let begin = stream::iter([frame(&said)]);
    let stream = match shared.after {
        After::Close => begin.boxed(),
        After::KeepOpen => begin.chain(stream::pending()).boxed(),
        After::SayMore => begin.chain(stream::iter([frame(&said), frame(&json!({"nonsense": 1}))])).boxed(),
    };
    let mut response = Response::new(Body::from_stream(stream));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

fn request(words: &str, context: Option<&str>) -> SendMessageRequest {
    let mut message = message("m", words);
    if let Some(context) = context {
        message["contextId"] = json!(context);
    }
    serde_json::from_value(json!({"message": message})).unwrap()
}

async fn streamed(client: &AgentClient, resuming: bool) -> Result<Vec<StreamItem>, ClientError> {
    let stream = client.send_streaming(request("hello", None)).await?;
    let stream = if resuming { stream.resuming(client, ResumePolicy::default()) } else { stream };
    tokio::time::timeout(PATIENCE, stream.try_collect()).await.expect("the stream ends")
}

#[tokio::test]
async fn a_message_as_an_answer_is_taken() {
    for binding in BOTH {
        let peer = Peer::start(binding, After::Close).await;
        let client = peer.client().await;
        let SendMessageResponse::Message(said) = client.send(request("hello", Some("c-9"))).await.unwrap()
        else {
            panic!("{binding:?}: the peer made no task");
        };
        assert_eq!(said.parts[0].as_text(), Some("You said: hello"), "{binding:?}");
        assert_eq!((said.context_id.as_deref(), said.task_id), (Some("c-9"), None));
    }
}

#[tokio::test]
async fn a_message_is_all_of_its_stream_whatever_the_peer_does_then() {
    for binding in BOTH {
        for after in [After::Close, After::KeepOpen, After::SayMore] {
            for resuming in [false, true] {
                let peer = Peer::start(binding, after).await;
                let items = streamed(&peer.client().await, resuming).await.unwrap();
                let [StreamItem { event: StreamResponse::Message(said), .. }] = items.as_slice() else {
                    panic!("{binding:?} {after:?} {resuming}: {items:?}");
                };
                assert_eq!(said.parts[0].as_text(), Some("You said: hello"));
                assert_eq!(peer.asked(), 1, "{binding:?} {after:?}: there is no task to subscribe to");
            }
        }
    }
}

#[tokio::test]
async fn the_server_answers_every_message_with_a_task() {
    let server = start().await;
    let envelope = json!({"name": "n", "goal": "g"});
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        for text in ["hello", "ask", "authorize", "tools", "finish", ""] {
            let said = |way: &str| {
                let id = format!("{binding:?}-{way}-{text}");
                let said =
                    if text.is_empty() { brief(&id, envelope.clone(), "") } else { message(&id, text) };
                json!({"message": said})
            };
            for (way, at_once) in [("waiting", false), ("at-once", true)] {
                let mut params = said(way);
                params["configuration"] = json!({"returnImmediately": at_once});
                let result = ada.ok("SendMessage", params).await;
                assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"], "{text}");
            }
            let frames = ada.stream("SendStreamingMessage", said("stream")).await;
            assert!(frames[0].1.get("task").is_some(), "{text}: {:?}", frames[0]);
            assert!(frames.iter().all(|(_, event)| event.get("message").is_none()), "{text}: {frames:?}");
        }
    }
}
