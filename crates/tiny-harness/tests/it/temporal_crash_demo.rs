//! The order-support example with one more table, on an embedded Temporal: the same as on the local engine, and still the
//! same when it is killed in between.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use futures::{StreamExt, stream};
use harness_testkit::temporal_binary;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api::{Event, chunk, message, reply, state},
    crash_demo::{anonymous, forget},
    rig::{Server, tiny_harness},
    stored,
    temporal_rig::is_sound,
};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// All that has to be added to a configuration.
const TABLE: &str = "[temporal]\nmode = \"embedded\"\n";
/// Crash points that are tried at once.
const AT_ONCE: usize = 2;
/// One commit of so many is a crash point, before it or after it by turns.
const STEP: usize = 2;
/// More commits than the example has.
const COMMITS_MAX: u64 = 200;

/// The example in a folder of its own.
struct Example {
    folder: TempDir,
    config: PathBuf,
}

/// What came of it.
#[derive(Debug)]
struct Outcome {
    task: Value,
    events: Vec<Value>,
    /// What became of each tool call, one after the other.
    calls: BTreeMap<String, Vec<String>>,
    journal: Vec<String>,
    deeds: Vec<String>,
    crashed: bool,
}

impl Example {
    fn new(table: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text =
            fs::read_to_string(format!("{REPOSITORY}/examples/order-support/tiny-harness.toml")).unwrap();
        let inside = |path: &Path| path.display().to_string();
        let text = text
            .replace("examples/order-support", &format!("{REPOSITORY}/examples/order-support"))
            .replace(".tiny-harness/order-support", &inside(folder.path()))
            .replace("127.0.0.1:8080", "127.0.0.1:0");
        let config = folder.path().join("tiny-harness.toml");
        fs::write(&config, format!("{text}\n[o11y]\nlog_level = \"DEBUG\"\n\n{table}")).unwrap();
        Self { folder, config }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("state.sqlite3")
    }

    /// Serves, with the Temporal of the tools as the one on the path.
    async fn serve(&self, args: &[&str]) -> Server {
        let program = tiny_harness(["serve", "--config", &self.config.display().to_string()]).args(args);
        let tools = temporal_binary().map(|binary| binary.parent().unwrap().canonicalize().unwrap());
        Server::launch(match tools {
            Some(tools) => program.env("PATH", &tools.display().to_string()),
            None => program,
        })
        .await
    }

    /// One complaint, from the first message to the end of the task.
    async fn play(&self, args: &[&str]) -> Outcome {
        let mut talk = Talk { example: self, server: Some(self.serve(args).await), crashed: false };
        let complaint = message("complaint-0", "My blender from order 48213 arrived broken.");
        let task = talk.say(complaint).await;
        let task = talk.wait_for(&task, "INPUT_REQUIRED").await;
        let task = talk.say(reply("complaint-1", "A replacement, please.", &task)).await;
        let task = talk.wait_for(&task, "COMPLETED").await;
        let (server, crashed) = talk.over().await;
        let events = server.ada().subscribe(task["id"].as_str().unwrap(), Some(0)).await.rest().await;
        let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
        let ended = server.stop().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        is_sound(&ended.stderr);
        let (events, calls) = masked(&events, &task);
        Outcome {
            events,
            calls,
            task: anonymous(&task),
            journal: stored::kinds(&self.store()),
            deeds: self.deeds(),
            crashed,
        }
    }

    /// Tools that changed something, as the ledger has them.
    fn deeds(&self) -> Vec<String> {
        let ledger = self.folder.path().join("plugin-data/demo-support/orders-ledger.jsonl");
        let ledger = fs::read_to_string(ledger).unwrap();
        let tools = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let tools = tools.map(|entry| entry["tool"].as_str().unwrap().to_owned());
        tools.filter(|tool| tool != "get_order" && tool != "list_open_orders").collect()
    }
}

/// A client that says it again when the server dies under it.
struct Talk<'a> {
    example: &'a Example,
    server: Option<Server>,
    crashed: bool,
}

impl Talk<'_> {
    async fn ask(&mut self, operation: &str, params: Value) -> Value {
        loop {
            let request = self.server.as_ref().unwrap().ada().request(operation, &params);
            let answer = async { request.send().await?.json::<Value>().await }.await;
            match answer {
                Ok(answer) => return answer["result"].clone(),
                Err(_) => self.restart().await,
            }
        }
    }

    /// The server killed itself: it starts again, and begins nothing whose end is recorded.
    async fn restart(&mut self) {
        let ended = self.server.take().unwrap().process.ended().await;
        assert!(ended.was_killed() && !self.crashed, "{ended:?}");
        is_sound(&ended.stderr);
        self.crashed = true;
        self.server = Some(self.example.serve(&[]).await);
    }

    /// Stops the server, unless it killed itself. Another one that shows what there is, and whether one killed itself.
    async fn over(mut self) -> (Server, bool) {
        let server = self.server.take().unwrap();
        if self.crashed {
            return (server, true);
        }
        let ended = server.stop().await;
        assert!(ended.was_killed() || ended.code == Some(0), "{ended:?}");
        is_sound(&ended.stderr);
        (self.example.serve(&[]).await, ended.was_killed())
    }

    async fn say(&mut self, message: Value) -> Value {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.ask("SendMessage", params).await["task"].clone()
    }

    async fn wait_for(&mut self, task: &Value, wanted: &str) -> Value {
        loop {
            let task = self.ask("GetTask", json!({"id": task["id"]})).await;
            if state(&task) == wanted {
                return task;
            }
            assert!(["SUBMITTED", "WORKING", "INPUT_REQUIRED"].contains(&state(&task)), "{task}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// Events without what is different in every run: ids, times, and where the answer was cut into chunks. Which of two calls
/// that run at once ends first is different too, so what events tell about calls stands apart, call by call.
fn masked(events: &[Event], task: &Value) -> (Vec<Value>, BTreeMap<String, Vec<String>>) {
    let (mut others, mut calls, mut answer) = (Vec::new(), BTreeMap::<_, Vec<_>>::new(), String::new());
    for (_, event) in events {
        if let Some(text) = chunk(event) {
            answer.push_str(text);
            continue;
        }
        let text = event.to_string().replace(task["id"].as_str().unwrap(), "TASK");
        let text = text.replace(task["contextId"].as_str().unwrap(), "CONTEXT");
        let mut event: Value = serde_json::from_str(&text).unwrap();
        forget(&mut event, &["timestamp", "duration_ms", "messageId"]);
        let parts = event["statusUpdate"]["status"]["message"]["parts"].as_array();
        let told = parts.into_iter().flatten().filter_map(|part| part["data"]["tool_calls"].as_array());
        let told: Vec<&Value> = told.flatten().collect();
        for call in &told {
            let states = calls.entry(call["call_id"].as_str().unwrap().to_owned()).or_default();
            if states.last() != Some(&call.to_string()) {
                states.push(call.to_string());
            }
        }
        if told.is_empty() {
            others.push(event);
        }
    }
    others.push(json!(answer));
    (others, calls)
}

#[tokio::test]
async fn the_example_does_the_same_on_temporal() {
    if temporal_binary().is_none() {
        return;
    }
    let (local, temporal) = (Example::new(""), Example::new(TABLE));
    let (expected, outcome) = (local.play(&[]).await, temporal.play(&[]).await);
    assert_eq!(expected.deeds, ["ship_replacement"]);
    let counts = (expected.events.len(), expected.calls.len());
    assert!(counts.0 > 3 && counts.1 > 3, "{counts:?}: {expected:?}");
    same(&outcome, &expected, "undisturbed");
    for (at, (one, other)) in outcome.events.iter().zip(&expected.events).enumerate() {
        assert!(one == other, "event {at}\n{one:#}\nis not\n{other:#}");
    }
    assert_eq!(outcome.events.len(), expected.events.len());
    assert_eq!(outcome.calls, expected.calls);
}

fn same(outcome: &Outcome, expected: &Outcome, what: &str) {
    assert_eq!(outcome.deeds, expected.deeds, "{what}");
    assert_eq!(outcome.journal, expected.journal, "{what}");
    assert!(outcome.task == expected.task, "{what}\n{:#}\nis not\n{:#}", outcome.task, expected.task);
}

#[tokio::test]
async fn the_example_on_temporal_survives_a_kill_at_any_commit() {
    if temporal_binary().is_none() {
        return;
    }
    let expected = Example::new("").play(&[]).await;
    let points = (1..COMMITS_MAX).step_by(STEP).enumerate();
    let points = points.map(|(at, commit)| (if at % 2 == 0 { "before" } else { "after" }, commit));
    let tried = stream::iter(points).map(async |(when, commit)| {
        let outcome = Example::new(TABLE).play(&["--crash-at", &format!("{when}:{commit}")]).await;
        same(&outcome, &expected, &format!("killed {when} commit {commit}"));
        outcome.crashed
    });
    let survived = tried.buffered(AT_ONCE).take_while(|crashed| std::future::ready(*crashed)).count().await;
    println!("{survived} crash points survived on an embedded Temporal");
    // Fewer than this, and it was not the example that was killed.
    assert!(survived >= 12, "only {survived} crash points");
}
