//! Bounds: what is too large, what is cut off, and what happens to a call that nobody reads any more.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::StreamExt;
use harness_ports::{ModelEvent, ModelProvider, TaskGroup};
use harness_providers::{ChatCompletionsConfig, ChatCompletionsProvider, ProviderSetupError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    fake_server::{FakeServer, Piece, Reply},
    outcome::{config, describe, provider, request, run},
};

const MIB: usize = 1 << 20;

async fn outcome(reply: Reply) -> String {
    let server = FakeServer::start(reply).await;
    describe(&run(&provider(&server.base_url, true), request()).await)
}

#[tokio::test]
async fn a_line_without_end_is_refused() {
    let mut reply = Reply::new(200, "text/event-stream", "data: ");
    for _ in 0..6 {
        reply = reply.then(Piece::Bytes(vec![b'x'; MIB]));
    }
    assert_eq!(outcome(reply.then(Piece::Stall)).await, "Unparseable, 200");
}

#[tokio::test]
async fn a_stream_without_end_is_refused() {
    let mut line = vec![b':'; MIB];
    line[MIB - 1] = b'\n';
    let mut reply = Reply::new(200, "text/event-stream", "");
    for _ in 0..50 {
        reply = reply.then(Piece::Bytes(line.clone()));
    }
    assert_eq!(outcome(reply.then(Piece::Stall)).await, "Unparseable, 200");
}

#[tokio::test]
async fn a_body_without_end_is_refused() {
    let mut reply = Reply::json(200, "{");
    for _ in 0..18 {
        reply = reply.then(Piece::Bytes(vec![b' '; MIB]));
    }
    assert_eq!(outcome(reply.then(Piece::Stall)).await, "Unparseable, 200");
}

#[tokio::test]
async fn an_error_page_without_end_is_cut_off() {
    let reply = Reply::new(503, "text/html", vec![b'<'; MIB]).then(Piece::Stall);
    assert_eq!(outcome(reply).await, "retryable, 503");
}

#[tokio::test]
async fn too_many_calls_are_refused() {
    let calls: Vec<String> =
        (0..65).map(|n| format!(r#"{{"id":"c{n}","function":{{"name":"create_plan"}}}}"#)).collect();
    let body = format!(
        r#"{{"choices":[{{"message":{{"tool_calls":[{}]}},"finish_reason":"tool_calls"}}]}}"#,
        calls.join(",")
    );
    assert_eq!(outcome(Reply::json(200, &body)).await, "Unparseable, 200");
}

#[tokio::test]
async fn text_arrives_while_the_model_speaks_and_dropping_the_stream_ends_the_call() {
    let hi = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let server = FakeServer::start(Reply::events(&[hi]).then(Piece::Stall)).await;
    let mut stream = provider(&server.base_url, true).stream(request());
    assert_eq!(stream.next().await, Some(Ok(ModelEvent::TextDelta("Hi".to_owned()))));
    drop(stream);
    server.client_gone().await;
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_connection() {
    let hi = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    for reply in [Reply::events(&[hi, "[DONE]"]), Reply::events(&[hi])] {
        let server = FakeServer::start(reply).await;
        let provider = provider(&server.base_url, true);
        for _ in 0..3 {
            run(&provider, request()).await.unwrap();
        }
        assert_eq!((server.requests().len(), server.connections()), (3, 1));
    }
}

#[tokio::test]
async fn a_kept_connection_that_nobody_listens_on_costs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let group = TaskGroup::new();
    let connections = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&connections);
    let stop = group.stop_token().clone();
    group.spawn(async move {
        let serve = async {
            while let Ok((socket, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                answer_once(socket).await;
            }
        };
        let _ended = stop.run_until_cancelled(serve).await;
    });
    let provider = provider(&base_url, true);
    for expected in 1..=4 {
        let (_, output) = run(&provider, request()).await.unwrap();
        assert_eq!(output.text, "Hi");
        assert_eq!(connections.load(Ordering::SeqCst), expected);
    }
    assert!(group.shutdown(std::time::Duration::from_secs(5)).await);
}

/// Answers one request, keeps the connection, and closes it when the next one has come.
async fn answer_once(mut socket: TcpStream) {
    let mut bytes = vec![0; 65_536];
    let mut read = Vec::new();
    while !read.ends_with(b"}") {
        let count = socket.read(&mut bytes).await.unwrap();
        read.extend_from_slice(&bytes[..count]);
    }
    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let _next = socket.read(&mut bytes).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_asked_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asking = async { run(&provider(&base_url, true), request()).await };
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 1_024];
        assert!(socket.read(&mut bytes).await.unwrap() > 0);
    };
    let (outcome, ()) = tokio::join!(asking, serving);
    assert_eq!(describe(&outcome), "retryable, no status");
}

#[tokio::test]
async fn nobody_there_is_retryable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let error = run(&provider(&base_url, true), request()).await.unwrap_err();
    assert_eq!(describe(&Err(error.clone())), "retryable, no status");
    assert!(error.message.starts_with("fake: cannot connect to http://127.0.0.1:"), "{}", error.message);
}

#[tokio::test]
async fn a_set_up_that_cannot_work_is_refused() {
    let with_url = |url: &str| ChatCompletionsProvider::new(config(url, true));
    assert!(matches!(with_url("http://example.com/v1"), Err(ProviderSetupError::BaseUrl(_))));
    let key = Some(harness_model::Secret::new("two\nlines"));
    let config = ChatCompletionsConfig { api_key: key, ..config("http://127.0.0.1:1/v1", true) };
    assert!(matches!(ChatCompletionsProvider::new(config), Err(ProviderSetupError::Key)));
}

#[tokio::test]
async fn https_uses_the_installed_tls_provider() {
    // Another test of this process may have installed it already.
    let _installed = rustls::crypto::ring::default_provider().install_default().is_ok();
    let provider = ChatCompletionsProvider::new(config("https://127.0.0.1:1/v1/", true)).unwrap();
    let info = provider.info();
    assert_eq!((info.endpoint.as_str(), info.api), ("https://127.0.0.1:1", "chat_completions"));
    assert_eq!(describe(&run(&provider, request()).await), "retryable, no status");
}
