//! The demo, killed before and after every commit of its store, always ends as if nothing had happened.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use futures::{StreamExt, stream};
use harness_testkit::Ended;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api::Binding,
    rig::{Server, begun, tiny_harness},
    stored,
};

/// Crash points that are tried at once.
const AT_ONCE: usize = 3;
/// More commits than the demo has; a demo that is still killed there never ends.
const COMMITS_MAX: u64 = 200;

/// Everything about a finished demo that must not depend on crashes.
struct Outcome {
    /// The task as clients see it, without ids and times.
    task: Value,
    /// Kinds of the recorded events: no work was recorded twice, none is missing.
    journal: Vec<String>,
    /// What was done to the outside world.
    deeds: Vec<String>,
}

impl Outcome {
    fn check(&self, expected: &Self, what: &str) {
        assert_eq!(self.deeds, expected.deeds, "{what}");
        assert_eq!(self.journal, expected.journal, "{what}");
        assert!(self.task == expected.task, "{what}\n{:#}\nis not\n{:#}", self.task, expected.task);
    }
}

/// The state folder of one demo, and how to look at it.
struct Demo {
    folder: TempDir,
}

impl Demo {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn store(&self) -> PathBuf {
        self.state().join("state.sqlite3")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.state().join("tiny-harness.log")).unwrap_or_default()
    }

    async fn run(&self, args: &[&str]) -> Ended {
        let state = self.state().display().to_string();
        tiny_harness(["demo", "--auto", "--json", "--state", &state]).args(args).run().await
    }

    /// Goes on to the end of the task. Work whose end was recorded is not begun again.
    async fn resume(&self) -> Ended {
        let recorded = stored::recorded_ends(&self.store());
        let old_log = self.log().len();
        let ended = self.run(&["--resume"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for run in begun(&self.log()[old_log..]) {
            let id = run["activity_id"].as_str().unwrap();
            assert!(!recorded.contains(id), "{id} was recorded and began again: {run}");
        }
        ended
    }

    /// Reads the task and its events again from a server on the same state, and checks what the demo printed.
    async fn outcome(&self, printed: &[&Ended]) -> Outcome {
        let server = Server::start(&free_port(&self.state()), []).await;
        let ada = server.api(Binding::Rest, "ada");
        let tasks = ada.ok("ListTasks", json!({})).await;
        let tasks = tasks["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 1, "one complaint is one task: {tasks:?}");
        let task = ada.task(tasks[0]["id"].as_str().unwrap()).await;
        let id = task["id"].as_str().unwrap();
        let log =
            tiny_harness(["tasks", "events", id, "--json", "--url", &server.url, "--participant", "ada"]);
        let log = log.run().await;
        assert_eq!(log.code, Some(0), "{log:?}");
        check_log(&events(&log.stdout), printed);
        assert_eq!(server.stop().await.code, Some(0));
        Outcome { task: anonymous(&task), journal: stored::kinds(&self.store()), deeds: self.deeds() }
    }

    /// Tools that changed something, as the ledger has them.
    fn deeds(&self) -> Vec<String> {
        let ledger = self.state().join("plugin-data/demo-support/orders-ledger.jsonl");
        let ledger = fs::read_to_string(ledger).unwrap();
        let tools = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let tools = tools.map(|entry| entry["tool"].as_str().unwrap().to_owned());
        tools.filter(|tool| tool != "get_order" && tool != "list_open_orders").collect()
    }
}

/// The configuration of a demo on a free port.
fn free_port(state: &Path) -> PathBuf {
    let text = fs::read_to_string(state.join("tiny-harness.toml")).unwrap();
    assert!(text.contains("bind = \"127.0.0.1:8080\""));
    let file = state.join("free-port.toml");
    fs::write(&file, text.replace("127.0.0.1:8080", "127.0.0.1:0")).unwrap();
    file
}

/// Printed events; the last line of a killed process may be half a line.
fn events(stdout: &str) -> Vec<(u64, Value)> {
    let whole = stdout.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["seq"].as_u64().unwrap(), line["event"].clone())
    };
    whole.lines().map(line).collect()
}

/// The log has every number once and no gap, and says what was printed while it grew.
fn check_log(log: &[(u64, Value)], printed: &[&Ended]) {
    let numbers: Vec<u64> = log.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<u64> = (1..=log.len() as u64).collect();
    assert_eq!(numbers, expected, "the creation is number 0, everything after it follows without a gap");
    let log: BTreeMap<u64, &Value> = log.iter().map(|(seq, event)| (*seq, event)).collect();
    for ended in printed {
        let mut last = None;
        for (seq, event) in events(&ended.stdout) {
            assert!(last < Some(seq), "event {seq} was printed after {last:?}");
            last = Some(seq);
            // A picture of the task stands for the events up to its number.
            if event.get("task").is_none() {
                assert_eq!(log.get(&seq), Some(&&event), "event {seq} changed after it was seen");
            }
        }
    }
}

/// A task without what is different in every run: ids, times, durations, and where an answer was cut into chunks.
pub(crate) fn anonymous(task: &Value) -> Value {
    let ids = [task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap()];
    let complaint = task["history"][0]["messageId"].as_str().unwrap();
    let session = complaint.strip_suffix("-0").unwrap();
    let mut text = task.to_string();
    for (id, name) in [(ids[0], "TASK"), (ids[1], "CONTEXT"), (session, "SESSION")] {
        text = text.replace(id, name);
    }
    let mut task: Value = serde_json::from_str(&text).unwrap();
    forget(&mut task, &["timestamp", "duration_ms"]);
    for artifact in task["artifacts"].as_array_mut().unwrap() {
        let texts: Option<String> =
            artifact["parts"].as_array().unwrap().iter().map(|part| part["text"].as_str()).collect();
        artifact["parts"] = json!(texts.expect("the demo's artifacts are answers"));
    }
    // The id of the last words counts the events before them, and so the chunks.
    let last_words = task["status"]["message"]["messageId"].take();
    let last = task["history"].as_array_mut().unwrap().last_mut().unwrap();
    assert_eq!(last["messageId"].take(), last_words);
    task
}

pub(crate) fn forget(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !keys.contains(&key.as_str()));
            fields.values_mut().for_each(|value| forget(value, keys));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| forget(value, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn undisturbed() -> Outcome {
    let demo = Demo::new();
    let ended = demo.run(&[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let outcome = demo.outcome(&[&ended]).await;
    assert_eq!(outcome.deeds, ["ship_replacement"]);
    assert_eq!(outcome.task["status"]["state"], "TASK_STATE_COMPLETED");
    let plan = &outcome.task["metadata"]["io.github.madarauchiha-314.tiny-harness/task"]["plan"];
    assert_eq!(plan["steps"].as_array().unwrap().len(), 4);
    outcome
}

/// Whether the demo was killed at this point; then it was resumed and has been looked at.
async fn survives(when: &'static str, commit: u64, expected: &Outcome) -> bool {
    let demo = Demo::new();
    let crashed = demo.run(&["--crash-at", &format!("{when}:{commit}")]).await;
    if !crashed.was_killed() {
        assert_eq!(crashed.code, Some(0), "{crashed:?}");
        return false;
    }
    let resumed = demo.resume().await;
    let outcome = demo.outcome(&[&crashed, &resumed]).await;
    outcome.check(expected, &format!("killed {when} commit {commit}"));
    true
}

#[tokio::test]
async fn the_demo_survives_a_kill_before_and_after_every_commit() {
    let expected = undisturbed().await;
    let mut survived = 0;
    for first in (1..COMMITS_MAX).step_by(AT_ONCE) {
        let commits = (first..).take(AT_ONCE);
        let points: Vec<_> = commits.flat_map(|commit| [("before", commit), ("after", commit)]).collect();
        let killed: Vec<bool> = stream::iter(&points)
            .map(|(when, commit)| survives(when, *commit, &expected))
            .buffered(AT_ONCE)
            .collect()
            .await;
        survived += killed.iter().filter(|killed| **killed).count();
        if killed.contains(&false) {
            println!("{survived} crash points survived");
            // Fewer than this, and it was not the demo that was killed.
            assert!(survived >= 50, "only {survived} crash points");
            return;
        }
    }
    panic!("the demo is still killed at commit {COMMITS_MAX}");
}

/// A crash while an earlier crash is being recovered from.
#[tokio::test]
async fn the_demo_survives_a_second_kill_while_it_recovers() {
    let expected = undisturbed().await;
    let twice = async |commit: u64| {
        let demo = Demo::new();
        let first = demo.run(&["--crash-at", &format!("after:{commit}")]).await;
        assert!(first.was_killed(), "{first:?}");
        let second = demo.run(&["--resume", "--crash-at", "after:1"]).await;
        assert!(second.was_killed(), "{second:?}");
        let third = demo.resume().await;
        let outcome = demo.outcome(&[&first, &second, &third]).await;
        outcome.check(&expected, &format!("killed after commit {commit}, and again"));
    };
    stream::iter((1..24).step_by(2)).map(twice).buffered(AT_ONCE).collect::<()>().await;
}
