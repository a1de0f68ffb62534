//! `chat` and `tasks` against a serving agent, as a person types them.

use harness_testkit::{Ended, Program};
use serde_json::Value;

use crate::{
    api::{message, state},
    rig::{Rig, Server, tiny_harness},
};

const SCRIPT: &str = r#"
[[turns]]
when = { text_equals = "ask me" }
calls = [{ name = "ask_participant", arguments = { participant_id = "ada", question = "Which colour?", options = ["red", "blue"] } }]

[[turns]]
chunks = ["You said: ", "{{message_text}}"]
"#;

fn tool(server: &Server, args: &[&str]) -> Program {
    tiny_harness([]).args(args).args(["--url", &server.url, "--participant", "ada"])
}

async fn run(server: &Server, args: &[&str]) -> Ended {
    tool(server, args).run().await
}

#[tokio::test]
async fn one_message_gets_one_answer() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let ended = run(&server, &["chat", "hello", "there"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("rig › You said: hello there"), "{ended:?}");
    assert!(ended.stdout.contains("is COMPLETED"), "{ended:?}");

    let ended = run(&server, &["chat", "--json", "hello"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["event"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_conversation_goes_on_until_the_person_leaves() {
    let rig = Rig::new(SCRIPT).conversations();
    let server = rig.serve().await;
    let mut chat = tool(&server, &["chat"]).start_with_keyboard();
    chat.stdout_contains("You talk to rig").await;
    chat.type_line("first").await;
    chat.stdout_contains("You said: first").await;
    chat.type_line("second").await;
    chat.stdout_contains("You said: second").await;
    chat.type_line("ask me").await;
    chat.stdout_contains("Which colour?").await;
    chat.end_input();
    let ended = chat.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("is INPUT_REQUIRED"), "leaving does not end the task: {ended:?}");

    let listed = run(&server, &["tasks", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let tasks = listed["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "one conversation is one task: {listed}");
    let id = tasks[0]["id"].as_str().unwrap();
    let ended = run(&server, &["chat", "--task", id, "blue"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("You said: blue"), "{ended:?}");

    let shown = run(&server, &["tasks", "show", id]).await;
    for words in ["first", "You said: first", "second", "Which colour?", "blue", "ada (human, reporter)"] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
}

#[tokio::test]
async fn tasks_are_listed_shown_followed_and_canceled() {
    let rig = Rig::new(SCRIPT).conversations();
    let server = rig.serve().await;
    let empty = run(&server, &["tasks", "list"]).await;
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), "(no tasks)\n"));
    let empty = run(&server, &["tasks", "list", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&empty.stdout).unwrap()["tasks"], serde_json::json!([]));
    let task = server.ada().send(message("m-1", "hello")).await;
    let id = task["id"].as_str().unwrap();

    let listed = run(&server, &["tasks", "list", "--state", "input-required"]).await;
    assert!(listed.stdout.starts_with(id) && listed.stdout.contains("INPUT_REQUIRED"), "{listed:?}");
    let listed = run(&server, &["tasks", "list", "--state", "working"]).await;
    assert_eq!(listed.stdout, "(no tasks)\n");
    let shown = run(&server, &["tasks", "show", id, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap(), server.ada().task(id).await);

    let events = run(&server, &["tasks", "events", id, "--json"]).await;
    let numbers = |ended: &Ended| -> Vec<u64> {
        let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["seq"].as_u64().unwrap()).collect()
    };
    let all = numbers(&events);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    let later = run(&server, &["tasks", "events", id, "--json", "--after", "2"]).await;
    assert_eq!(numbers(&later), all[2..]);
    let never = run(&server, &["tasks", "events", id, "--after", "999"]).await;
    assert_eq!((never.code, never.stdout.as_str()), (Some(1), ""), "{never:?}");
    let words = format!("the task has no event 999 yet; its last one is {}", all.len());
    assert!(never.stderr.contains(&words), "{never:?}");

    let canceled = run(&server, &["tasks", "cancel", id]).await;
    assert_eq!((canceled.code, canceled.stdout), (Some(0), format!("task {id} is CANCELED\n")));
    assert_eq!(state(&server.ada().task(id).await), "CANCELED");
    let again = run(&server, &["tasks", "cancel", id]).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""), "{again:?}");
    assert!(again.stderr.contains("has ended"), "{again:?}");
    let last = numbers(&run(&server, &["tasks", "events", id, "--json"]).await).pop().unwrap().to_string();
    let nothing = run(&server, &["tasks", "events", id, "--after", &last]).await;
    assert_eq!((nothing.code, nothing.stdout.as_str(), nothing.stderr.as_str()), (Some(0), "", ""));
}

#[tokio::test]
async fn what_cannot_be_done_is_said_on_stderr_with_a_status() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let unknown = run(&server, &["tasks", "show", "no-such-task"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""), "{unknown:?}");
    assert!(unknown.stderr.contains("task not found"), "{unknown:?}");
    let mistyped = run(&server, &["tasks", "list", "--state", "busy"]).await;
    assert_eq!(mistyped.code, Some(2), "{mistyped:?}");
    assert!(mistyped.stderr.contains("the states are"), "{mistyped:?}");
    let too_many = run(&server, &["tasks", "list", "--limit", "1000"]).await;
    assert_eq!(too_many.code, Some(2), "{too_many:?}");

    // Others see nothing of a task, not even that it exists.
    let task = server.ada().send(message("m-1", "hello")).await;
    let id = task["id"].as_str().unwrap();
    let bob = tiny_harness(["tasks", "show", id, "--url", &server.url, "--participant", "bob"]).run().await;
    assert_eq!(bob.code, Some(1), "{bob:?}");
    assert!(bob.stderr.contains("task not found"), "{bob:?}");

    let url = server.url.clone();
    server.stop().await;
    for args in [&["chat", "hello"][..], &["tasks", "list"]] {
        let ended = tiny_harness([]).args(args).args(["--url", &url, "--participant", "ada"]).run().await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("cannot talk to the agent at"), "{ended:?}");
    }
    let nobody = tiny_harness(["chat", "hello", "--url", &url]).run().await;
    assert_eq!(nobody.code, Some(2), "without a user name somebody has to say who they are: {nobody:?}");
}

#[tokio::test]
async fn a_follower_sees_the_end_although_the_server_was_killed_meanwhile() {
    let script = "[[turns]]\nchunks = [\"one \", \"two \", \"three \", \"four\"]\nchunk_delay_ms = 300\n";
    // The follower comes back to the same address, so the port has to stay.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let rig = Rig::new(script).server(&format!("base_url = \"http://127.0.0.1:{port}\""));
    let config = rig.config();
    let text = std::fs::read_to_string(&config).unwrap().replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&config, []).await;
    let mut chat = tool(&server, &["chat", "go on"]).start();
    chat.stdout_contains("one ").await;
    server.kill().await;
    let _server = Server::start(&config, []).await;
    let ended = chat.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("one two three four"), "{ended:?}");
    assert!(ended.stdout.contains("is COMPLETED"), "{ended:?}");
}
