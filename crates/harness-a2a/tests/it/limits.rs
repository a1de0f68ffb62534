//! What is refused before any work is done.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    api::{Binding, message},
    server::{PATIENCE, start, start_with},
};

/// Sends bytes as they are and reads what comes back until the connection closes.
async fn exchange(address: std::net::SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("an answer in time")
        .unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn bodies_over_the_limit_are_refused_whether_declared_or_counted() {
    let server = start().await;
    let text = "x".repeat(2 << 20);
    for path in ["/", "/message:send", "/healthz"] {
        let body = json!({"message": message("m", &text)}).to_string();
        let request =
            server.http.post(format!("{}{path}", server.base)).header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 413, "{path}");
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(response.text().await.unwrap(), "request too large");
    }
    let mut chunked = b"POST /message:send HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
        content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..32 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&[b' '; 0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let answer = exchange(server.address, &chunked).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with("request too large"), "{answer}");
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read() {
    let server = start_with(|config| config.max_request_bytes = 2_000).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).to_string();
    for (bytes, status) in [(2_000, 200), (2_001, 413)] {
        let padded = format!("{body}{}", " ".repeat(bytes - body.len()));
        let request =
            server.http.post(format!("{}/", server.base)).header("content-type", "application/json");
        let response = request.header("a2a-version", "1.0").body(padded).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
    }
}

#[tokio::test]
async fn a_larger_limit_is_honoured() {
    let server = start_with(|config| config.max_request_bytes = 4 << 20).await;
    let ada = server.caller(Binding::JsonRpc, "ada");
    let task = ada.send(message("m", &format!("hello {}", "x".repeat(3 << 20)))).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
}

#[tokio::test]
async fn too_many_requests_are_refused() {
    // The clock moves on by a second with each request, which refills three tokens a minute by a twentieth.
    let server = start_with(|config| config.rate_limit_per_minute = 3).await;
    let mut statuses = Vec::new();
    for path in ["/healthz", "/tasks", "/.well-known/agent-card.json", "/healthz", "/ui/tasks"] {
        let response = server.http.get(format!("{}{path}", server.base)).send().await.unwrap();
        statuses.push(response.status().as_u16());
        if response.status().as_u16() == 429 {
            assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
            assert_eq!(response.text().await.unwrap(), "rate limit exceeded");
        }
    }
    assert_eq!(statuses, [200, 400, 200, 429, 429]);
}

#[tokio::test]
async fn nonsense_on_the_wire_is_answered_or_closed() {
    let server = start().await;
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"GET\r\n\r\n", b"\r\n\r\n\r\n\0\0\0\r\n\r\n"]
    {
        let answer = exchange(server.address, bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(100_000));
    let answer = exchange(server.address, long.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert_eq!(
        server.http.get(format!("{}/healthz", server.base)).send().await.unwrap().status().as_u16(),
        200
    );
}

#[tokio::test]
async fn browsers_of_configured_origins_may_call() {
    let server = start_with(|config| config.cors_origins = vec!["https://ui.example".to_owned()]).await;
    for (origin, allowed) in [("https://ui.example", true), ("https://evil.example", false)] {
        let request = server.http.request(reqwest::Method::OPTIONS, format!("{}/tasks", server.base));
        let request = request.header("origin", origin).header("access-control-request-method", "DELETE");
        let response = request.send().await.unwrap();
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("access-control-allow-origin"), allowed.then(|| origin.to_owned()));
        let headers = header("access-control-allow-headers").unwrap_or_default();
        assert!(headers.contains("x-participant-id") && headers.contains("a2a-version"));
    }
    let none = start().await;
    let request = none.http.get(format!("{}/healthz", none.base)).header("origin", "https://ui.example");
    assert!(!request.send().await.unwrap().headers().contains_key("access-control-allow-origin"));
}
