//! A2A calls over both bindings, as plain HTTP: what any client sends and reads.

use futures::{StreamExt, stream::BoxStream};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

/// How long the next event of a stream may take.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    Rest,
}

pub(crate) const BOTH: [Binding; 2] = [Binding::JsonRpc, Binding::Rest];

/// An event of a stream: its number, and what it says.
pub(crate) type Event = (u64, Value);

/// A refusal: the reason, the JSON-RPC code or the HTTP status, the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// One participant over one binding.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    http: Client,
    url: String,
    binding: Binding,
    participant: String,
}

/// A client that installs the provider of cryptography first, as the program itself does.
pub(crate) fn http() -> Client {
    // Another test of this process may have been faster.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder().no_proxy().build().unwrap()
}

impl Api {
    pub(crate) fn new(url: &str, binding: Binding, participant: &str) -> Self {
        Self { http: http(), url: url.to_owned(), binding, participant: participant.to_owned() }
    }

    /// A call that may be refused.
    pub(crate) async fn call(&self, operation: &str, params: Value) -> Result<Value, Refusal> {
        self.outcome(self.request(operation, &params).send().await.unwrap()).await
    }

    pub(crate) async fn ok(&self, operation: &str, params: Value) -> Value {
        self.call(operation, params).await.unwrap()
    }

    pub(crate) async fn refused(&self, operation: &str, params: Value) -> Refusal {
        self.call(operation, params).await.unwrap_err()
    }

    /// Sends a message and waits for the end of the turn; the task.
    pub(crate) async fn send(&self, message: Value) -> Value {
        self.ok("SendMessage", json!({"message": message})).await["task"].clone()
    }

    /// Sends a message and does not wait; the task.
    pub(crate) async fn send_off(&self, message: Value) -> Value {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.ok("SendMessage", params).await["task"].clone()
    }

    pub(crate) async fn task(&self, id: &str) -> Value {
        self.ok("GetTask", json!({"id": id})).await
    }

    /// Waits until a task is in this state; the task.
    pub(crate) async fn task_in(&self, id: &str, state: &str) -> Value {
        let wanted = format!("TASK_STATE_{state}");
        crate::rig::until(&format!("task {id} is {state}"), async || {
            self.task(id).await["status"]["state"] == wanted.as_str()
        })
        .await;
        self.task(id).await
    }

    /// Opens a stream.
    pub(crate) async fn open(&self, operation: &str, params: Value, after: Option<u64>) -> Events {
        let mut request = self.request(operation, &params);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { binding: self.binding, bytes: response.bytes_stream().boxed(), text: String::new() }
    }

    pub(crate) async fn subscribe(&self, task: &str, after: Option<u64>) -> Events {
        self.open("SubscribeToTask", json!({"id": task}), after).await
    }

    pub(crate) fn request(&self, operation: &str, params: &Value) -> RequestBuilder {
        let request = match self.binding {
            Binding::JsonRpc => {
                let body = json!({"jsonrpc": "2.0", "id": "r-1", "method": operation, "params": params});
                self.http.post(format!("{}/", self.url)).json(&body)
            }
            Binding::Rest => self.rest_request(operation, params),
        };
        request.header("a2a-version", "1.0").header("x-participant-id", &self.participant)
    }

    fn rest_request(&self, operation: &str, params: &Value) -> RequestBuilder {
        let (http, url) = (&self.http, &self.url);
        let id = params["id"].as_str().unwrap_or_default();
        let post = |path: String| http.post(format!("{url}{path}")).json(params);
        match operation {
            "SendMessage" => post("/message:send".to_owned()),
            "SendStreamingMessage" => post("/message:stream".to_owned()),
            "CancelTask" => post(format!("/tasks/{id}:cancel")),
            "SubscribeToTask" => http.get(format!("{url}/tasks/{id}:subscribe")),
            "GetTask" => http.get(format!("{url}/tasks/{id}")),
            "ListTasks" => http.get(format!("{url}/tasks")),
            other => panic!("no route for {other}"),
        }
    }

    async fn outcome(&self, response: Response) -> Result<Value, Refusal> {
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        match body.get("error") {
            Some(error) => Err(refusal(error)),
            None if self.binding == Binding::JsonRpc => Ok(body["result"].clone()),
            None => {
                assert!(status.is_success(), "{status}: {body}");
                Ok(body)
            }
        }
    }
}

/// An error of either binding.
pub(crate) fn refusal(error: &Value) -> Refusal {
    let details = error.get("details").or_else(|| error.get("data"));
    let reason = details.and_then(|details| details[0]["reason"].as_str()).unwrap_or_default();
    Refusal {
        reason: reason.to_owned(),
        code: error["code"].as_i64().unwrap(),
        message: error["message"].as_str().unwrap().to_owned(),
    }
}

/// A stream that is being read.
pub(crate) struct Events {
    binding: Binding,
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
}

impl Events {
    /// The next event; `None` when the stream has ended, in order or not.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                if !frame.starts_with(':') {
                    return Some(self.event(&frame));
                }
                continue;
            }
            let chunk = timeout(PATIENCE, self.bytes.next()).await.expect("an event or the end")?;
            self.text.push_str(std::str::from_utf8(&chunk.ok()?).unwrap());
        }
    }

    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    fn event(&self, frame: &str) -> Event {
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let data: Value = serde_json::from_str(field("data:")).unwrap();
        let event = match self.binding {
            Binding::JsonRpc => data["result"].clone(),
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

/// The short name of a task's state.
pub(crate) fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap().trim_start_matches("TASK_STATE_")
}

/// The words of a task's status.
pub(crate) fn words(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// The text of a chunk of an answer; `None` for other events.
pub(crate) fn chunk(event: &Value) -> Option<&str> {
    event["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()
}

/// The tool calls of a task as its events tell them, each as it was told last.
pub(crate) async fn tool_calls(api: &Api, task: &Value) -> Vec<Value> {
    let events = api.subscribe(task["id"].as_str().unwrap(), Some(0)).await.rest().await;
    let mut calls: Vec<Value> = Vec::new();
    for (_, event) in &events {
        let parts = event["statusUpdate"]["status"]["message"]["parts"].as_array();
        let told = parts.into_iter().flatten().filter_map(|part| part["data"]["tool_calls"].as_array());
        for call in told.flatten() {
            match calls.iter_mut().find(|known| known["call_id"] == call["call_id"]) {
                Some(known) => known.clone_from(call),
                None => calls.push(call.clone()),
            }
        }
    }
    calls
}
