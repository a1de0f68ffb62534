//! Both bindings behind one call, so that every check runs on both.

use futures::StreamExt;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::server::{PATIENCE, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    Rest,
}

pub(crate) const BOTH: [Binding; 2] = [Binding::JsonRpc, Binding::Rest];

/// An error as a peer reads it: the reason, and the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// A frame of a stream: its number, and the event.
pub(crate) type Frame = (u64, Value);

/// A caller: a binding and the participant it asserts in the header.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) server: &'a Server,
    pub(crate) binding: Binding,
    pub(crate) participant: Option<&'a str>,
}

impl Server {
    pub(crate) fn caller<'a>(&'a self, binding: Binding, participant: &'a str) -> Caller<'a> {
        let participant = (!participant.is_empty()).then_some(participant);
        Caller { server: self, binding, participant }
    }
}

impl Caller<'_> {
    pub(crate) async fn call(self, operation: &str, params: Value) -> Result<Value, Refusal> {
        let response = self.request(operation, params).send().await.unwrap();
        outcome(self.binding, response).await
    }

    pub(crate) async fn ok(self, operation: &str, params: Value) -> Value {
        self.call(operation, params).await.unwrap()
    }

    pub(crate) async fn refused(self, operation: &str, params: Value) -> Refusal {
        self.call(operation, params).await.unwrap_err()
    }

    /// A blocking send; the task.
    pub(crate) async fn send(self, message: Value) -> Value {
        self.ok("SendMessage", json!({"message": message})).await["task"].clone()
    }

    /// A stream from its request to its end.
    pub(crate) async fn stream(self, operation: &str, params: Value) -> Vec<Frame> {
        let mut open = self.open(operation, params, None).await;
        open.rest().await
    }

    pub(crate) async fn open(self, operation: &str, params: Value, after: Option<u64>) -> OpenStream {
        let mut request = self.request(operation, params);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        OpenStream { binding: self.binding, response: response.bytes_stream().boxed(), text: String::new() }
    }

    pub(crate) fn request(self, operation: &str, params: Value) -> RequestBuilder {
        let base = &self.server.base;
        let http = &self.server.http;
        let request = match self.binding {
            Binding::JsonRpc => {
                let body = json!({"jsonrpc": "2.0", "id": "r-1", "method": operation, "params": params});
                http.post(format!("{base}/"))
                    .header("content-type", "application/json")
                    .body(body.to_string())
            }
            Binding::Rest => rest_request(self.server, operation, &params),
        };
        let request = request.header("a2a-version", "1.0");
        match self.participant {
            Some(id) => request.header("x-participant-id", id),
            None => request,
        }
    }
}

fn rest_request(server: &Server, operation: &str, params: &Value) -> RequestBuilder {
    let (base, http) = (&server.base, &server.http);
    let id = params["id"].as_str().unwrap_or_default();
    let configs = format!("/tasks/{}/pushNotificationConfigs", params["taskId"].as_str().unwrap_or_default());
    let post = |path: String| {
        http.post(format!("{base}{path}"))
            .header("content-type", "application/a2a+json")
            .body(params.to_string())
    };
    match operation {
        "SendMessage" => post("/message:send".to_owned()),
        "SendStreamingMessage" => post("/message:stream".to_owned()),
        "CancelTask" => post(format!("/tasks/{id}:cancel")),
        "SubscribeToTask" => http.get(format!("{base}/tasks/{id}:subscribe")),
        "GetExtendedAgentCard" => http.get(format!("{base}/extendedAgentCard")),
        "CreateTaskPushNotificationConfig" => post(configs),
        "GetTaskPushNotificationConfig" => http.get(format!("{base}{configs}/{id}")),
        "DeleteTaskPushNotificationConfig" => http.delete(format!("{base}{configs}/{id}")),
        "ListTaskPushNotificationConfigs" => {
            let page = ["pageSize", "pageToken"].map(|key| (key, params[key].as_str().unwrap_or_default()));
            http.get(format!("{base}{configs}")).query(&page)
        }
        "GetTask" | "ListTasks" => {
            let mut query: Vec<(String, String)> = Vec::new();
            for (key, value) in params.as_object().unwrap() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if !(operation == "GetTask" && key == "id") {
                    query.push((key.clone(), text));
                }
            }
            let path = if operation == "GetTask" { format!("/tasks/{id}") } else { "/tasks".to_owned() };
            http.get(format!("{base}{path}")).query(&query)
        }
        other => panic!("no route for {other}"),
    }
}

/// What a response says; on the way the form that the binding prescribes is checked.
async fn outcome(binding: Binding, response: Response) -> Result<Value, Refusal> {
    let status = response.status().as_u16();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    match binding {
        Binding::JsonRpc => {
            assert_eq!((status, content_type.as_str()), (200, "application/json"));
            assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!("r-1")));
            match body.get("error") {
                None => Ok(body["result"].clone()),
                Some(error) => {
                    let refusal = refusal(&error["message"], &error["data"]);
                    assert_eq!(error["code"], row(&refusal.reason).0, "{error}");
                    Err(refusal)
                }
            }
        }
        Binding::Rest => {
            assert_eq!(content_type, "application/a2a+json");
            match body.get("error") {
                None => {
                    assert_eq!(status, 200, "{body}");
                    Ok(body)
                }
                Some(error) => {
                    let refusal = refusal(&error["message"], &error["details"]);
                    assert_eq!(error["code"], status);
                    let (_, http, name) = row(&refusal.reason);
                    assert_eq!((status, &error["status"]), (http, &json!(name)), "{error}");
                    Err(refusal)
                }
            }
        }
    }
}

fn refusal(message: &Value, details: &Value) -> Refusal {
    let info = details
        .as_array()
        .unwrap()
        .iter()
        .find(|detail| detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo")
        .unwrap();
    assert_eq!(info["domain"], "a2a-protocol.org");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Refusal { reason: text(&info["reason"]), message: text(message) }
}

/// JSON-RPC code, HTTP status and google.rpc status of a reason.
fn row(reason: &str) -> (i64, u16, &'static str) {
    match reason {
        "TASK_NOT_FOUND" => (-32001, 404, "NOT_FOUND"),
        "TASK_NOT_CANCELABLE" => (-32002, 400, "FAILED_PRECONDITION"),
        "PUSH_NOTIFICATION_NOT_SUPPORTED" => (-32003, 400, "FAILED_PRECONDITION"),
        "UNSUPPORTED_OPERATION" => (-32004, 400, "FAILED_PRECONDITION"),
        "CONTENT_TYPE_NOT_SUPPORTED" => (-32005, 400, "INVALID_ARGUMENT"),
        "EXTENSION_SUPPORT_REQUIRED" => (-32008, 400, "FAILED_PRECONDITION"),
        "VERSION_NOT_SUPPORTED" => (-32009, 400, "FAILED_PRECONDITION"),
        "INVALID_PARAMS" => (-32602, 400, "INVALID_ARGUMENT"),
        "UNAVAILABLE" => (-32603, 503, "UNAVAILABLE"),
        other => panic!("unexpected reason {other}"),
    }
}

/// A stream that is being read.
pub(crate) struct OpenStream {
    binding: Binding,
    response: futures::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
}

impl OpenStream {
    /// The next frame; `None` when the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                if !frame.starts_with(':') {
                    return Some(self.frame(&frame));
                }
                continue;
            }
            let chunk =
                tokio::time::timeout(PATIENCE, self.response.next()).await.expect("a frame or the end")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    fn frame(&self, text: &str) -> Frame {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let data: Value = serde_json::from_str(field("data:")).unwrap();
        let event = match self.binding {
            Binding::JsonRpc => {
                assert_eq!((&data["jsonrpc"], &data["id"]), (&json!("2.0"), &json!("r-1")));
                data["result"].clone()
            }
            Binding::Rest => data,
        };
        (field("id:").parse().unwrap(), event)
    }
}

/// A message of one text part.
pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A message to a task.
pub(crate) fn reply(id: &str, text: &str, task: &Value) -> Value {
    let mut message = message(id, text);
    message["taskId"] = task["id"].clone();
    message
}

/// A message with one `task` envelope, and a text unless it is empty.
pub(crate) fn brief(id: &str, payload: Value, text: &str) -> Value {
    let envelope = json!({
        "data": {"kind": "task", "payload": payload},
        "mediaType": "application/vnd.tiny-harness.event+json",
    });
    let mut message = message(id, text);
    message["parts"] = if text.is_empty() { json!([envelope]) } else { json!([{"text": text}, envelope]) };
    message
}

/// Short form of a stream: `3 statusUpdate WORKING`.
pub(crate) fn outline(frames: &[Frame]) -> Vec<String> {
    frames
        .iter()
        .map(|(seq, event)| {
            let (kind, body) = event.as_object().unwrap().iter().next().unwrap();
            let detail = match kind.as_str() {
                "artifactUpdate" => body["artifact"]["parts"][0]["text"].as_str().unwrap(),
                _ => body["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_"),
            };
            format!("{seq} {kind} {detail}")
        })
        .collect()
}
