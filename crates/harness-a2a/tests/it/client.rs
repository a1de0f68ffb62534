//! The client against the server, and against servers that misbehave.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use harness_a2a::{
    AgentClient, ClientError, ClientLimits, ErrorKind, StreamItem,
    wire::{
        ListTasksRequest, Message, Part, Role, SendMessageRequest, SendMessageResponse, StreamResponse, Task,
        TaskState,
    },
};
use harness_model::ParticipantId;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::server::{PATIENCE, Server, install_tls, start};

/// Whether an error is the expected one.
type Check = fn(&ClientError) -> bool;

async fn connect(server: &Server) -> AgentClient {
    let ada = Some(ParticipantId::from("ada"));
    AgentClient::connect(&server.base, ada, ClientLimits::default()).await.unwrap()
}

fn request(id: &str, text: &str, task: Option<&Task>) -> SendMessageRequest {
    let mut message = Message::new(Role::User, vec![Part::text(text)]);
    message.message_id = id.to_owned();
    message.task_id = task.map(|task| task.id.clone());
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

async fn send(client: &AgentClient, request: SendMessageRequest) -> Task {
    match client.send(request).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(_) => panic!("the agent always makes a task"),
    }
}

#[tokio::test]
async fn every_operation_works() {
    let server = start().await;
    let client = connect(&server).await;
    assert_eq!(client.card().name, "tiny-harness");
    let task = send(&client, request("1", "hello", None)).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
    let items: Vec<StreamItem> =
        client.send_streaming(request("2", "ask", Some(&task))).await.unwrap().try_collect().await.unwrap();
    assert_eq!(items.first().unwrap().seq, Some(5));
    assert!(matches!(&items[0].event, StreamResponse::Task(shown) if shown.id == task.id));
    assert_eq!(client.get(&task.id, Some(1)).await.unwrap().history.unwrap().len(), 1);
    let list = ListTasksRequest {
        context_id: None,
        status: None,
        page_size: None,
        page_token: None,
        history_length: None,
        status_timestamp_after: None,
        include_artifacts: None,
        tenant: None,
    };
    assert_eq!(client.list(list).await.unwrap().total_size, 1);
    let rest: Vec<StreamItem> =
        client.subscribe(&task.id, Some(5)).await.unwrap().try_collect().await.unwrap();
    assert_eq!(rest.iter().map(|item| item.seq).collect::<Vec<_>>(), [Some(6)]);
    assert_eq!(client.cancel(&task.id).await.unwrap().status.state, TaskState::Canceled);
    let refused = client.cancel(&task.id).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::TaskNotCancelable));
    let refused = client.subscribe(&task.id, None).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::UnsupportedOperation));
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let server = start().await;
    let client = connect(&server).await;
    let task = send(&client, request("1", "hello", None)).await;
    drop(client);
    let connections = server.group.len();
    let client = connect(&server).await;
    let mut stream = client.subscribe(&task.id, None).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    drop(client);
    let gone = async {
        while server.group.len() > connections {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the server sees the end of the connection");
}

/// A server that reads one request and answers with these bytes, once for each of them.
async fn scripted(answers: Vec<String>) -> String {
    install_tls();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let card = card(&base);
    let group = harness_ports::TaskGroup::new();
    let serving = async move {
        for answer in std::iter::once(card).chain(answers) {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let mut request = [0; 8_192];
            drop(stream.read(&mut request).await);
            drop(stream.write_all(answer.as_bytes()).await);
            drop(stream.shutdown().await);
            // Wait for the other side, so that what was written is not thrown away by a reset.
            while stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {}
        }
    };
    group.spawn(serving);
    base
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n{body}")
}

fn card(base: &str) -> String {
    let card = format!(
        r#"{{"name":"n","description":"d","version":"1","capabilities":{{}},"skills":[],"supportedInterfaces":
        [{{"url":"{base}/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
    );
    http("200 OK", "application/json", &card)
}

#[tokio::test]
async fn answers_that_are_not_valid_are_errors() {
    let limits = ClientLimits { response_bytes_max: 4_096, event_bytes_max: 64, ..ClientLimits::default() };
    let json = |body: &str| http("200 OK", "application/json", body);
    let table: Vec<(String, Check)> = vec![
        (json("nonsense"), |e| matches!(e, ClientError::InvalidResponse(_))),
        (json("[]"), |e| matches!(e, ClientError::InvalidResponse(_))),
        (json(&"[".repeat(1_000)), |e| matches!(e, ClientError::InvalidResponse(_))),
        (json(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#), |e| matches!(e, ClientError::InvalidResponse(_))),
        (json(r#"{"jsonrpc":"2.0","id":1}"#), |e| matches!(e, ClientError::InvalidResponse(_))),
        (json(r#"{"jsonrpc":"2.0","id":1,"result":{"id":5}}"#), |e| {
            matches!(e, ClientError::InvalidResponse(_))
        }),
        (json(&"x".repeat(5_000)), |e| matches!(e, ClientError::TooLarge { max: 4_096 })),
        (
            http("401 Unauthorized", "text/plain", "who\r\nare you"),
            |e| matches!(e, ClientError::Status { status: 401, text } if text == "who are you"),
        ),
        (http("302 Found", "text/plain", ""), |e| matches!(e, ClientError::Status { status: 302, .. })),
        (
            http(
                "400 Bad Request",
                "application/json",
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"x"}}"#,
            ),
            |e| e.kind() == Some(ErrorKind::TaskNotFound),
        ),
        (String::new(), |e| matches!(e, ClientError::Unreachable(_))),
    ];
    for (answer, expected) in table {
        let base = scripted(vec![answer.clone()]).await;
        let client = AgentClient::connect(&base, None, limits).await.unwrap();
        let error = client.get("t", None).await.unwrap_err();
        assert!(expected(&error), "{answer:.90} {error:?}");
    }
}

#[tokio::test]
async fn streams_that_are_not_valid_end_with_one_error() {
    let limits =
        ClientLimits { event_bytes_max: 64, idle: Duration::from_millis(50), ..ClientLimits::default() };
    let sse = |body: &str| http("200 OK", "text/event-stream; charset=utf-8", body);
    let table: Vec<(String, Check)> = vec![
        (sse("data: nonsense\r\n\r\n"), |e| matches!(e, ClientError::InvalidResponse(_))),
        (sse(&format!("data: {}", "x".repeat(100))), |e| matches!(e, ClientError::TooLarge { max: 64 })),
        (sse("data: {\"id\":1,\"error\":{\"code\":-32603,\"message\":\"m\"}}\n\n"), |e| {
            e.kind() == Some(ErrorKind::Internal)
        }),
    ];
    for (answer, expected) in table {
        let base = scripted(vec![answer]).await;
        let client = AgentClient::connect(&base, None, limits).await.unwrap();
        let mut stream = client.subscribe("t", None).await.unwrap();
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(expected(&error), "{error:?}");
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test]
async fn cards_are_checked_before_they_are_used() {
    install_tls();
    let limits = ClientLimits { card_bytes_max: 2_048, ..ClientLimits::default() };
    let answer = |extra: &str, interface: &str| {
        let card = format!(
            r#"{{"name":"n","version":"1","skills":[],"capabilities":{extra},"supportedInterfaces":[{interface}]}}"#
        );
        http("200 OK", "application/json", &card)
    };
    let rpc = r#"{"url":"http://x/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}"#;
    let table: Vec<(String, Check)> = vec![
        (
            answer(r#"{"extensions":[{"uri":"u:x","required":true}]}"#, rpc),
            |e| matches!(e, ClientError::UnsupportedExtension { uri } if uri == "u:x"),
        ),
        (answer("{}", &rpc.replace("JSONRPC", "GRPC")), |e| matches!(e, ClientError::NoInterface)),
        (answer("{}", &rpc.replace("1.0", "0.3")), |e| matches!(e, ClientError::NoInterface)),
        (answer("{}", &rpc.replace("http://x/", "file:///etc/passwd")), |e| {
            matches!(e, ClientError::NoInterface)
        }),
        (answer("{}", &format!("{rpc}{}", " ".repeat(4_000))), |e| matches!(e, ClientError::TooLarge { .. })),
        (http("404 Not Found", "text/plain", "no"), |e| matches!(e, ClientError::Status { status: 404, .. })),
        (http("200 OK", "text/html", "<html>"), |e| matches!(e, ClientError::InvalidResponse(_))),
    ];
    for (answer, expected) in table {
        let base = one_answer(answer).await;
        let error = AgentClient::connect(&base, None, limits).await.unwrap_err();
        assert!(expected(&error), "{error:?}");
    }
    let error = AgentClient::connect("ftp://x", None, limits).await.unwrap_err();
    assert!(matches!(error, ClientError::InvalidRequest(_)), "{error:?}");
}

async fn one_answer(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    harness_ports::TaskGroup::new().spawn(async move {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        let mut request = [0; 8_192];
        drop(stream.read(&mut request).await);
        drop(stream.write_all(answer.as_bytes()).await);
        drop(stream.shutdown().await);
        while stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {}
    });
    base
}
