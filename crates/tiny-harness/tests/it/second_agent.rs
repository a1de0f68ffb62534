//! The harness as a client: two turns of one task with a second harness, and with an agent of the official Python SDK.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
};

use futures::TryStreamExt;
use harness_a2a::{
    AgentClient, ClientLimits, StreamItem,
    wire::{SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskState},
};
use harness_model::ParticipantId;
use harness_ports::TaskGroup;
use harness_testkit::{Process, Program};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    api::{http, message},
    rig::{Rig, Server, tiny_harness},
};

const SCRIPT: &str = r#"
[[turns]]
when = { text_equals = "ask me" }
calls = [{ name = "ask_participant", arguments = { participant_id = "ada", question = "Which colour?", options = ["red", "blue"] } }]

[[turns]]
text = "You said: {{message_text}}"
"#;

/// Between a client and a server: passes everything on and keeps what the client sends.
struct Tap {
    address: SocketAddr,
    /// What came over each connection.
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    _group: TaskGroup,
}

impl Tap {
    async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let group = TaskGroup::new();
        let (shared, passing) = (Arc::clone(&sent), group.clone());
        group.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                passing.spawn(pass(client, port, Arc::clone(&shared)));
            }
        });
        Self { address, sent, _group: group }
    }

    /// The messages that were sent, in order.
    fn messages(&self) -> Vec<Value> {
        let sent = self.sent.lock().unwrap();
        let texts = sent.iter().map(|bytes| String::from_utf8(bytes.clone()).unwrap());
        let bodies = texts.flat_map(|text| text.split("\r\n\r\n").map(str::to_owned).collect::<Vec<_>>());
        // What follows a body is the head of the next request.
        let values = bodies.filter_map(|body| serde_json::Deserializer::from_str(&body).into_iter().next());
        values
            .filter_map(Result::ok)
            .filter_map(|body: Value| body["params"].get("message").cloned())
            .collect()
    }
}

async fn pass(client: TcpStream, port: u16, sent: Arc<Mutex<Vec<Vec<u8>>>>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let index = {
        let mut sent = sent.lock().unwrap();
        sent.push(Vec::new());
        sent.len() - 1
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let onward = async {
        let mut buffer = [0; 4_096];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            sent.lock().unwrap()[index].extend_from_slice(&buffer[..count]);
            if to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
        drop(to_server.shutdown().await);
    };
    let back = tokio::io::copy(&mut from_server, &mut to_client);
    futures::join!(onward, async { drop(back.await) });
}

/// A second harness behind a tap, which its card leads to.
async fn tapped() -> (Rig, Server, Tap) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tap = Tap::before(port).await;
    let rig = Rig::new(SCRIPT).conversations().server(&format!("base_url = \"http://{}\"", tap.address));
    let config = rig.config();
    let text = std::fs::read_to_string(&config).unwrap().replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&config, []).await;
    (rig, server, tap)
}

async fn client(url: &str) -> AgentClient {
    // The provider of cryptography, without which no client can be built.
    drop(http());
    AgentClient::connect(url, Some(ParticipantId::from("ada")), ClientLimits::default()).await.unwrap()
}

fn request(id: &str, words: &str, task: Option<&Task>) -> SendMessageRequest {
    let mut message = message(id, words);
    if let Some(task) = task {
        message["taskId"] = json!(task.id);
        message["contextId"] = json!(task.context_id);
    }
    serde_json::from_value(json!({"message": message})).unwrap()
}

async fn send(client: &AgentClient, request: SendMessageRequest) -> Task {
    match client.send(request).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(_) => panic!("the agent makes a task"),
    }
}

/// What the people of a task have said, each with the task and the context that it was said in.
fn said(task: &Task) -> Vec<(String, Option<String>, Option<String>)> {
    let said = task.history.iter().flatten().filter(|message| message.role == harness_a2a::wire::Role::User);
    let words = |message: &harness_a2a::wire::Message| message.parts[0].as_text().unwrap().to_owned();
    said.map(|message| (words(message), message.task_id.clone(), message.context_id.clone())).collect()
}

fn in_task(task: &Task, words: &[&str]) -> Vec<(String, Option<String>, Option<String>)> {
    let said = |words: &&str| ((*words).to_owned(), Some(task.id.clone()), Some(task.context_id.clone()));
    words.iter().map(said).collect()
}

/// Asserts that the first of these messages named no task and every other one this task and its context.
fn assert_named(messages: &[Value], task: &Task) {
    let ids = |message: &Value| [message["taskId"].clone(), message["contextId"].clone()];
    assert_eq!(ids(&messages[0]), [Value::Null, Value::Null]);
    for later in &messages[1..] {
        assert_eq!(ids(later), [json!(task.id), json!(task.context_id)], "{later}");
    }
}

/// Two turns at the keyboard; the id of the task that the program names at the end.
async fn two_turns(url: &str, agent: &str, first: &str, shown: &str, second: &str) -> String {
    let mut chat = tiny_harness(["chat", "--url", url, "--participant", "ada"]).start_with_keyboard();
    chat.stdout_contains(&format!("You talk to {agent}")).await;
    chat.type_line(first).await;
    chat.stdout_contains(shown).await;
    chat.stdout_contains("INPUT_REQUIRED").await;
    chat.type_line(second).await;
    chat.stdout_contains(&format!("You said: {second}")).await;
    chat.end_input();
    let ended = chat.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let line = ended.stdout.lines().find(|line| line.starts_with("task ")).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_second_harness_sees_one_task_with_two_turns() {
    let (_rig, server, tap) = tapped().await;
    let id = two_turns(&server.url, "rig", "ask me", "Which colour?", "red").await;
    let peer = client(&server.url).await;
    let task = peer.get(&id, None).await.unwrap();
    assert_eq!(said(&task), in_task(&task, &["ask me", "red"]));
    assert_named(&tap.messages(), &task);

    // Another process goes on with the task; it is told the task alone.
    let args = ["chat", "--url", &server.url, "--participant", "ada", "--task", &id, "blue"];
    let ended = tiny_harness(args).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(tap.messages().len(), 3);
    assert_named(&tap.messages(), &task);
    let page = peer.list(serde_json::from_value(json!({})).unwrap()).await.unwrap();
    assert_eq!(page.total_size, 1);
}

#[tokio::test]
async fn the_client_takes_two_turns_with_a_second_harness() {
    let (_rig, server, tap) = tapped().await;
    let peer = client(&server.url).await;
    let asked = send(&peer, request("m-1", "ask me", None)).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let stream = peer.send_streaming(request("m-2", "red", Some(&asked))).await.unwrap();
    let items: Vec<StreamItem> = stream.try_collect().await.unwrap();
    assert!(matches!(&items[0].event, StreamResponse::Task(task) if task.id == asked.id), "{items:?}");
    let task = peer.get(&asked.id, None).await.unwrap();
    assert_eq!(said(&task), in_task(&asked, &["ask me", "red"]));
    assert_named(&tap.messages(), &asked);
}

/// An agent of the official Python SDK that speaks this binding; `None`, and a line on stderr, when the SDK is not there.
struct SdkPeer {
    url: String,
    process: Process,
}

impl SdkPeer {
    #[expect(
        clippy::disallowed_methods,
        clippy::print_stderr,
        reason = "whoever runs the tests says whether tools may be missing, and hears when they are"
    )]
    async fn start(binding: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let kit = root.join(".tools/a2a-kits/testbed");
        if !kit.join("installed.txt").exists() {
            let required = std::env::var("HARNESS_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "the official SDK is not installed: run `cargo xtask tools`");
            eprintln!("SKIPPED: the official SDK is not installed; `cargo xtask tools` installs it");
            return None;
        }
        let script = root.join("tools/a2a-kits/python_peer.py");
        let mut process =
            Program::new(kit.join("bin/python")).args([script.as_os_str(), binding.as_ref()]).start();
        let text = process.stdout_contains("\n").await;
        let url = text.lines().find_map(|line| line.strip_prefix("listening ")).unwrap().to_owned();
        Some(Self { url, process })
    }

    /// The messages that were posted, in order.
    async fn messages(&self) -> Vec<Value> {
        let seen: Vec<Value> =
            http().get(format!("{}/seen", self.url)).send().await.unwrap().json().await.unwrap();
        let message = |body: &Value| body.get("params").unwrap_or(body).get("message").cloned();
        seen.iter().filter_map(message).collect()
    }
}

#[tokio::test]
async fn an_agent_of_another_make_sees_one_task_with_two_turns() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let Some(sdk) = SdkPeer::start(binding).await else { return };
        let id = two_turns(&sdk.url, "sdk-peer", "hello", "You said: hello", "more").await;
        let peer = client(&sdk.url).await;
        let task = peer.get(&id, None).await.unwrap();
        assert_eq!(task.status.state, TaskState::Completed, "{binding}");
        assert_eq!(said(&task), in_task(&task, &["hello", "more"]), "{binding}");
        assert_named(&sdk.messages().await, &task);

        let asked = send(&peer, request("m-1", "hello", None)).await;
        let ended = send(&peer, request("m-2", "more", Some(&asked))).await;
        assert_eq!((&ended.id, ended.status.state), (&asked.id, TaskState::Completed), "{binding}");
        assert_named(&sdk.messages().await[2..], &asked);
        sdk.process.kill().await;
    }
}

#[tokio::test]
async fn an_agent_of_another_make_may_answer_with_a_message() {
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let Some(sdk) = SdkPeer::start(binding).await else { return };
        let args = ["chat", "--url", &sdk.url, "--participant", "ada", "just talk"];
        let ended = tiny_harness(args).run().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{binding} {ended:?}");
        assert!(ended.stdout.contains("sdk-peer › You said: just talk"), "{ended:?}");
        assert!(!ended.stdout.contains("task "), "there is none: {ended:?}");
        let answer = client(&sdk.url).await.send(request("m", "just talk", None)).await.unwrap();
        assert!(matches!(answer, SendMessageResponse::Message(_)), "{binding} {answer:?}");
        sdk.process.kill().await;
    }
}
