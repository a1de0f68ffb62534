//! The lean A2A client of the measurements: one kept connection, JSON-RPC, answers checked and not parsed.

use std::{io, net::SocketAddr};

use serde_json::{Value, json};

use super::http::{Head, Wire};
use crate::failure::Failure;

/// One connection to a server that is measured.
pub(super) struct Client {
    wire: Wire,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Result<Self, Failure> {
        Ok(Self { wire: Wire::connect(address).await.map_err(broke)? })
    }

    /// So many connections.
    pub(super) async fn several(address: SocketAddr, count: usize) -> Result<Vec<Self>, Failure> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(Self::connect(address).await?);
        }
        Ok(clients)
    }

    /// A GET request and its whole answer.
    pub(super) async fn get(&mut self, path: &str) -> Result<String, Failure> {
        self.wire
            .write(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())
            .await
            .map_err(broke)?;
        self.whole().await
    }

    /// A POST request and its whole answer.
    pub(super) async fn post(&mut self, path: &str, body: &str) -> Result<String, Failure> {
        self.ask(path, body).await?;
        self.whole().await
    }

    /// A POST request that is answered with a stream; its events follow.
    pub(super) async fn open(&mut self, path: &str, body: &str) -> Result<(), Failure> {
        self.ask(path, body).await?;
        let head = self.head().await?;
        match head.length {
            None => Ok(()),
            Some(bytes) => {
                let body = self.wire.sized(bytes).await.map_err(broke)?;
                Err(unexpected("an answer instead of a stream", &String::from_utf8_lossy(&body)))
            }
        }
    }

    /// The next event of the stream; `None` after the last one. A server writes each event as one chunk.
    pub(super) async fn event(&mut self) -> Result<Option<String>, Failure> {
        let chunk = self.wire.chunk().await.map_err(broke)?;
        Ok(chunk.map(|chunk| String::from_utf8_lossy(&chunk).into_owned()))
    }

    /// Reads on until an event holds this text.
    pub(super) async fn event_with(&mut self, text: &str) -> Result<String, Failure> {
        let mut last = String::new();
        while let Some(event) = self.event().await? {
            if event.contains(text) {
                return Ok(event);
            }
            last = event;
        }
        Err(unexpected(&format!("no event with {text}"), &last))
    }

    /// Reads the stream to its end.
    pub(super) async fn drain(&mut self) -> Result<(), Failure> {
        while self.event().await?.is_some() {}
        Ok(())
    }

    async fn ask(&mut self, path: &str, body: &str) -> Result<(), Failure> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.wire.write(request.as_bytes()).await.map_err(broke)
    }

    async fn head(&mut self) -> Result<Head, Failure> {
        let head = self.wire.head().await.map_err(broke)?;
        let head = head.ok_or_else(|| Failure::general("a server that is measured closed a connection"))?;
        if head.first.starts_with("HTTP/1.1 200") {
            Ok(head)
        } else {
            Err(unexpected("an answer that is no success", &head.first))
        }
    }

    async fn whole(&mut self) -> Result<String, Failure> {
        let head = self.head().await?;
        let bytes = match head.length {
            Some(bytes) => self.wire.sized(bytes).await.map_err(broke)?,
            None => return Err(Failure::general("a stream came instead of an answer")),
        };
        String::from_utf8(bytes).map_err(|_| Failure::general("an answer is not text"))
    }
}

/// A message to the agent.
pub(super) struct Say<'a> {
    /// Unique in the run of a server.
    pub(super) message_id: String,
    pub(super) text: &'a str,
    /// The task it belongs to; a new one without.
    pub(super) task_id: Option<&'a str>,
}

impl Say<'_> {
    /// The request that waits for the end of the turn.
    pub(super) fn and_wait(&self) -> String {
        self.request("SendMessage", &json!({}))
    }

    /// The request that is answered as soon as the message is durable.
    pub(super) fn and_leave(&self) -> String {
        self.request("SendMessage", &json!({"returnImmediately": true}))
    }

    /// The request for a stream.
    pub(super) fn and_stream(&self) -> String {
        self.request("SendStreamingMessage", &json!({}))
    }

    fn request(&self, method: &str, configuration: &Value) -> String {
        let mut message = json!({
            "messageId": self.message_id, "role": "ROLE_USER", "parts": [{"text": self.text}],
        });
        if let Some(task_id) = self.task_id {
            message["taskId"] = task_id.into();
        }
        rpc(method, &json!({"message": message, "configuration": configuration}))
    }
}

/// A JSON-RPC request.
pub(super) fn rpc(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// The answer, if it holds this text: a wrong answer must not count as a fast one.
pub(super) fn expect(answer: String, text: &str) -> Result<String, Failure> {
    if answer.contains(text) { Ok(answer) } else { Err(unexpected(&format!("no {text}"), &answer)) }
}

fn unexpected(what: &str, answer: &str) -> Failure {
    Failure::general(format!(
        "a server that is measured gave {what}: {}",
        harness_model::truncate_chars(answer, 600)
    ))
}

fn broke(error: io::Error) -> Failure {
    Failure::general(format!("the connection to a server that is measured broke: {error}"))
}
