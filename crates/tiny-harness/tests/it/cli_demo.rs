//! The demo as a person meets it: typed answers, Ctrl-C, going on later.

use std::{fs, path::PathBuf};

use axum::{Router, http::StatusCode, routing::post};
use harness_ports::TaskGroup;
use harness_testkit::{Process, Program};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::rig::tiny_harness;

/// A folder for the state of one demo.
struct Demo {
    folder: TempDir,
}

impl Demo {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn state(&self) -> String {
        self.folder.path().join("state").display().to_string()
    }

    fn program(&self, args: &[&str]) -> Program {
        tiny_harness(["demo", "--state", &self.state()]).args(args)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("state/plugin-data/demo-support")
    }

    /// What the tools did, in order.
    fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.data().join("orders-ledger.jsonl")).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.map(|entry| entry["tool"].as_str().unwrap().to_owned()).collect()
    }

    /// Makes the look-up of the order wait, until it is told to go on.
    fn slow(&self) -> PathBuf {
        fs::create_dir_all(self.data()).unwrap();
        let file = self.data().join("slow-get-order");
        fs::write(&file, "").unwrap();
        file
    }

    /// Ctrl-C, and what it leaves.
    async fn interrupted(&self, process: Process) {
        process.interrupt();
        let ended = process.ended().await;
        assert_eq!((ended.code, ended.signal), (Some(130), None), "{ended:?}");
        let advice = format!("go on with: tiny-harness demo --resume --state {}", self.state());
        assert!(ended.stdout.contains(&advice), "{ended:?}");
    }

    async fn finishes(&self) {
        let ended = self.program(&["--resume", "--auto"]).run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("is COMPLETED"), "{ended:?}");
        assert_eq!(self.ledger().iter().filter(|tool| *tool == "ship_replacement").count(), 1);
    }
}

#[tokio::test]
async fn a_typed_answer_is_what_is_carried_out() {
    for (answer, deed, words) in [
        ("refund", "refund", "129.00 USD are on their way back"),
        ("a new one, please", "ship_replacement", "a replacement Nimbus 900 is on its way"),
    ] {
        let demo = Demo::new();
        let mut process = demo.program(&[]).start_with_keyboard();
        let asked = process.stdout_contains("you › ").await;
        assert!(asked.contains("Would you like a replacement blender or your money back?"), "{asked}");
        assert!(asked.contains("- replacement") && asked.contains("- refund"), "{asked}");
        process.type_line(answer).await;
        let ended = process.ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stdout.contains(words) && ended.stdout.contains("is COMPLETED"), "{ended:?}");
        assert!(ended.stdout.contains("4 of 4 steps done"), "{ended:?}");
        assert_eq!(demo.ledger(), ["get_order", deed]);
    }
}

#[tokio::test]
async fn a_demo_that_nobody_answers_waits() {
    let demo = Demo::new();
    let ended = demo.program(&[]).run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("is INPUT_REQUIRED"), "{ended:?}");
    assert!(ended.stdout.contains("it waits; go on with: tiny-harness demo --resume"), "{ended:?}");
    assert_eq!(demo.ledger(), ["get_order"], "nothing is done without an answer");
    demo.finishes().await;
}

#[tokio::test]
async fn an_interrupt_while_a_question_is_open_loses_nothing() {
    let demo = Demo::new();
    let mut process = demo.program(&[]).start_with_keyboard();
    process.stdout_contains("you › ").await;
    demo.interrupted(process).await;
    demo.finishes().await;
    assert_eq!(demo.ledger(), ["get_order", "ship_replacement"]);
}

#[tokio::test]
async fn an_interrupt_while_a_tool_works_loses_nothing() {
    let demo = Demo::new();
    let slow = demo.slow();
    let mut process = demo.program(&["--auto"]).start();
    process.stdout_contains("policy.lookup").await;
    demo.interrupted(process).await;
    fs::remove_file(slow).unwrap();
    demo.finishes().await;
}

#[tokio::test]
async fn a_finished_demo_can_be_looked_at_again_and_a_new_one_begun() {
    let demo = Demo::new();
    let first = demo.program(&["--auto"]).run().await;
    assert_eq!(first.code, Some(0), "{first:?}");
    // Going on with what has ended shows it and does nothing.
    demo.finishes().await;
    assert_eq!(demo.ledger(), ["get_order", "ship_replacement"]);
    let again = demo.program(&["--auto"]).run().await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(demo.ledger(), ["get_order", "ship_replacement", "get_order", "ship_replacement"]);
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_a_status() {
    let demo = Demo::new();
    let nothing = demo.program(&["--resume"]).run().await;
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.stderr.contains("there is no demo to go on with"), "{nothing:?}");
    for args in
        [&["--base-url", "http://127.0.0.1:1/v1"][..], &["--model", "gpt"], &["--crash-at", "sometime:1"]]
    {
        let refused = demo.program(args).run().await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.starts_with("error: "), "{refused:?}");
    }
}

#[tokio::test]
async fn a_model_that_refuses_the_key_fails_the_demo_and_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let refuse = post(|| async { (StatusCode::UNAUTHORIZED, "{\"error\":{\"message\":\"bad key\"}}") });
    let serving = TaskGroup::new();
    let app = Router::new().route("/v1/chat/completions", refuse);
    serving.spawn(async move { axum::serve(listener, app).await.unwrap() });

    let demo = Demo::new();
    let program = demo.program(&["--model", "openai:any", "--base-url", &url]);
    let ended = program.env("OPENAI_API_KEY", "sk-0123456789abcdef0123456789").run().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("provider.auth"), "{ended:?}");
    assert!(ended.stderr.contains("the task is FAILED"), "{ended:?}");
    let log = fs::read_to_string(PathBuf::from(demo.state()).join("tiny-harness.log")).unwrap();
    for text in [&ended.stdout, &ended.stderr, &log] {
        assert!(!text.contains("sk-0123456789abcdef"), "the key is told: {text}");
    }
}

#[tokio::test]
async fn what_a_model_said_can_be_played_back() {
    let (recorded, replayed) = (Demo::new(), Demo::new());
    let tape = recorded.folder.path().join("tape").display().to_string();
    let first = recorded.program(&["--auto", "--record", &tape]).run().await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let again = replayed.program(&["--auto", "--replay", &tape]).run().await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stdout.contains("COMPLETED"));
    assert_eq!(replayed.ledger(), recorded.ledger());

    // The customer chooses otherwise: nobody recorded what the model says then.
    let other = Demo::new();
    let mut process = other.program(&["--replay", &tape]).start_with_keyboard();
    process.stdout_contains("- refund").await;
    process.type_line("refund").await;
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("FAILED"), "{ended:?}");
}
