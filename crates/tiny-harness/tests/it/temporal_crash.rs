//! Temporal, and processes that die: with the worker, with the server, with all of it. Nothing is lost, nothing that was
//! recorded is done again, and what may have had an effect is done once or reported unknown.

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    api::{Api, message, reply, state, tool_calls, words},
    crash_streams,
    rig::{Rig, Server, logged, until},
    temporal_rig::{
        Activities, Estate, begins_none_of, embedded_tables, ended_activity, is_sound, model_calls, recovered,
    },
};

/// What each message sets going: a model that takes its time, a tool that only reads, one that acts, a question.
const SCRIPT: &str = r#"
[[turns]]
when = { last_is = "tool_result", shown_contains = "tool.outcome_unknown" }
text = "Nobody knows."

[[turns]]
when = { last_is = "tool_result", tool_result = { name = "odd/tools.read" } }
text = "Read."

[[turns]]
when = { last_is = "tool_result", tool_result = { name = "odd/tools.act" } }
text = "Acted."

[[turns]]
when = { asked = "ask_participant", last_is = "user" }
text = "You chose {{message_text}}."

[[turns]]
when = { text_contains = "think" }
delay_ms = 2000
text = "Thought."

[[turns]]
when = { text_contains = "read" }
calls = [{ name = "odd/tools.read", arguments = {} }]

[[turns]]
when = { text_contains = "act" }
calls = [{ name = "odd/tools.act", arguments = {} }]

[[turns]]
when = { text_contains = "ask" }
calls = [{ name = "ask_participant", arguments = { participant_id = "ada", question = "Which one?", options = ["left", "right"] } }]
"#;
const THINK: usize = 0;
const READ: usize = 1;
const ACT: usize = 2;
const ASK: usize = 3;
const WHAT: [&str; 4] = ["think", "read", "act", "ask"];

/// Four tasks, each in the middle of something else.
struct Busy(Vec<Value>);

impl Busy {
    /// Sends the messages and waits until all of it is under way; `log` is that of whoever works.
    async fn begin(rig: &Rig, ada: &Api, log: impl Fn() -> String) -> Self {
        rig.hold("read");
        rig.hold("act");
        let sends = WHAT.iter().map(|what| ada.send_off(message(&format!("m-{what}"), what)));
        let busy = Self(join_all(sends).await);
        ada.task_in(busy.id(ASK), "INPUT_REQUIRED").await;
        until("tools and model are at work", async || {
            let thinks = model_calls(&log()).iter().any(|(task, _)| task == busy.id(THINK));
            thinks && rig.called("read") == 1 && rig.called("act") == 1
        })
        .await;
        busy
    }

    fn id(&self, which: usize) -> &str {
        self.0[which]["id"].as_str().unwrap()
    }

    /// All of them end as they should, `act` with these words.
    async fn end(&self, ada: &Api, what: &str, acted: &str) {
        let begun = Instant::now();
        let end = async |which: usize, expected: &str| {
            let task = ada.task_in(self.id(which), "COMPLETED").await;
            recovered(&format!("{what}, {}", WHAT[which]), begun);
            assert_eq!(words(&task), expected, "{what}");
        };
        let answer = async {
            ada.send_off(reply("m-answer", "left", &self.0[ASK])).await;
            end(ASK, "You chose left.").await;
        };
        tokio::join!(end(THINK, "Thought."), end(READ, "Read."), end(ACT, acted), answer);
        for task in &self.0 {
            let events = ada.subscribe(task["id"].as_str().unwrap(), Some(0)).await.rest().await;
            let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
            assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
        }
    }

    /// The call of the tool that acts, as clients see it.
    async fn act(&self, ada: &Api) -> Value {
        tool_calls(ada, &self.0[ACT]).await[0]["state"].clone()
    }
}

#[tokio::test]
async fn a_killed_worker_is_replaced_by_another() {
    let Some(estate) = Estate::over(Rig::new(SCRIPT).adverse("plain")).await else { return };
    let (server, worker) = (estate.server().await, estate.worker().await);
    let ada = server.ada();
    let busy = Busy::begin(&estate.rig, &ada, || worker.log()).await;
    let recorded = estate.recorded();
    let first = worker.kill().await;
    estate.rig.release("read");
    estate.rig.release("act");
    let worker = estate.worker().await;
    busy.end(&ada, "worker killed", "Nobody knows.").await;

    begins_none_of(&worker.log(), &recorded);
    assert_eq!(busy.act(&ada).await, "outcome_unknown");
    assert_eq!((estate.rig.called("read"), estate.rig.called("act")), (2, 1));
    // One call was cut off; every other one was recorded, once.
    let calls = model_calls(&first.stderr).len() + model_calls(&worker.log()).len();
    let ended =
        estate.recorded().iter().filter(|(_, id)| is_model_call(id, &first.stderr, &worker.log())).count();
    assert_eq!(calls, ended + 1);
    is_sound(&first.stderr);
    worker.stop().await;
    assert_eq!(server.stop().await.code, Some(0));
}

fn is_model_call(id: &str, first: &str, second: &str) -> bool {
    let mut calls = model_calls(first);
    calls.extend(model_calls(second));
    calls.iter().any(|(_, call)| call == id)
}

#[tokio::test]
async fn a_killed_process_with_its_temporal_goes_on_at_the_next_start() {
    let Some(tables) = embedded_tables() else { return };
    let rig = Rig::new(SCRIPT).adverse("plain").tables(&tables);
    let server = rig.serve().await;
    let busy = Busy::begin(&rig, &server.ada(), || server.process.stderr()).await;
    let recorded = recorded(&rig);
    let first = server.kill().await;
    rig.release("read");
    rig.release("act");
    let begun = Instant::now();
    let server = rig.serve().await;
    recovered("embedded process killed, serving", begun);
    busy.end(&server.ada(), "embedded process killed", "Nobody knows.").await;

    begins_none_of(&server.process.stderr(), &recorded);
    assert_eq!(busy.act(&server.ada()).await, "outcome_unknown");
    assert_eq!((rig.called("read"), rig.called("act")), (2, 1));
    is_sound(&first.stderr);
    let ended = server.stop().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    is_sound(&ended.stderr);
}

/// Activities whose end is recorded in the store of this rig.
fn recorded(rig: &Rig) -> Activities {
    let rows = crate::stored::texts(
        &rig.store(),
        "SELECT w.workflow_id || '|' || j.event FROM journal j JOIN workflows w ON w.id = j.workflow",
    );
    let ended = |row: &String| {
        let (task, event) = row.split_once('|').unwrap();
        Some((task.to_owned(), ended_activity(event)?))
    };
    rows.iter().filter_map(ended).collect()
}

#[tokio::test]
async fn work_goes_on_when_the_temporal_server_comes_back() {
    let Some(mut estate) = Estate::over(Rig::new(SCRIPT).adverse("plain")).await else { return };
    let (server, worker) = (estate.server().await, estate.worker().await);
    let ada = server.ada();
    let busy = Busy::begin(&estate.rig, &ada, || worker.log()).await;
    let recorded = estate.recorded();
    estate.stop_temporal().await;
    // Nobody has to be there for a message to be taken.
    let late = ada.send_off(message("m-late", "think about something else")).await;
    assert!(["SUBMITTED", "WORKING"].contains(&state(&late)), "{late}");
    let begun = Instant::now();
    estate.start_temporal().await;
    estate.rig.release("read");
    estate.rig.release("act");
    let (end, taken) = (busy.end(&ada, "Temporal restarted", "Acted."), async {
        let task = ada.task_in(late["id"].as_str().unwrap(), "COMPLETED").await;
        recovered("Temporal restarted, message taken meanwhile", begun);
        assert_eq!(words(&task), "Thought.");
    });
    tokio::join!(end, taken);

    assert_eq!(busy.act(&ada).await, "succeeded");
    assert_eq!(estate.rig.called("act"), 1, "the worker lived, and what it did is done once");
    for call in model_calls(&worker.log()) {
        assert!(
            !recorded.contains(&call)
                || model_calls(&worker.log()).iter().filter(|one| **one == call).count() == 1,
            "{call:?} was recorded and asked for again"
        );
    }
    worker.stop().await;
    let ended = server.stop().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(logged(&ended.stderr, "workflow cannot be woken yet").len() < 100);
}

#[tokio::test]
async fn a_stream_goes_on_at_another_server_without_a_gap() {
    let Some(estate) = Estate::over(Rig::new(&crash_streams::script())).await else { return };
    let (server, worker) = (estate.server().await, estate.worker().await);
    let params = json!({"message": message("m-1", "go on")});
    let mut stream = server.ada().open("SendStreamingMessage", params, None).await;
    let (mut before, mut task) = (Vec::new(), None);
    while crash_streams::text(&before).is_empty() {
        let (seq, event) = stream.next().await.unwrap();
        task = task.or_else(|| event["task"]["id"].as_str().map(str::to_owned));
        before.push((seq, event));
    }
    drop(stream);
    server.kill().await;
    let begun = Instant::now();
    let server: Server = estate.server().await;
    let last = before.last().unwrap().0;
    let mut stream = server.ada().subscribe(&task.unwrap(), Some(last)).await;
    let first = stream.next().await.unwrap();
    recovered("server killed while a client streams, next event", begun);
    let mut after = vec![first];
    after.extend(stream.rest().await);
    assert_eq!(after[0].0, last + 1);
    crash_streams::check(&after);
    assert_eq!(crash_streams::text(&before) + &crash_streams::text(&after), crash_streams::whole_text());
    worker.stop().await;
    assert_eq!(server.stop().await.code, Some(0));
}
