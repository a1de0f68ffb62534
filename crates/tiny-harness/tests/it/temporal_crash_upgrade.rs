//! Case C17: everything is replaced while 50 tasks are parked or in the middle of a turn. The new configuration has one tool
//! less, one more, the others in another order, and another prompt.

use std::fs;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    api::{Api, message, reply, state, tool_calls, words},
    rig::{ADVERSE_SERVER, NAMESPACE, Rig, until},
    temporal_rig::{Estate, is_sound, model_calls, recovered},
};

/// Before and after: a model that says which prompt it has read.
fn script(prompt: &str, words: &str, thinks_ms: u32) -> String {
    format!(
        r#"
[[turns]]
when = {{ last_is = "tool_result", shown_contains = "tool.outcome_unknown", instructions_contain = "{prompt}" }}
text = "Nobody knows. {words}"

[[turns]]
when = {{ last_is = "tool_result", instructions_contain = "{prompt}" }}
text = "That is all. {words}"

[[turns]]
when = {{ text_contains = "think", instructions_contain = "{prompt}" }}
delay_ms = {thinks_ms}
text = "Thought. {words}"

[[turns]]
when = {{ text_contains = "use the old tool" }}
calls = [{{ name = "old/tools.read", arguments = {{}} }}]

[[turns]]
when = {{ text_contains = "use the new tool" }}
calls = [{{ name = "new/tools.read", arguments = {{}} }}]

[[turns]]
when = {{ text_contains = "act" }}
calls = [{{ name = "odd/tools.act", arguments = {{}} }}]

[[turns]]
when = {{ text_contains = "ask", nowhere_contains = "Which one" }}
calls = [{{ name = "ask_participant", arguments = {{ participant_id = "ada", question = "Which one?", options = ["a", "b"] }} }}]

[[turns]]
when = {{ instructions_contain = "{prompt}" }}
text = "Hello. {words}"
"#
    )
}

/// What a task does when its processes are replaced, and how many of them do.
const DOINGS: [(&str, usize); 5] =
    [("hello", 15), ("ask", 10), ("think", 10), ("use the old tool", 10), ("act", 5)];

/// A rig with two plugins, and a third for later. The prompt is part of the first.
fn rig() -> Rig {
    let rig = Rig::new(&script("brief", "Bye.", 30_000))
        .conversations()
        .server("shutdown_grace = \"PT1S\"")
        .tables("[context]\nmax_turns = 20\n")
        .adverse("plain");
    let server = |name: &str| {
        fs::create_dir(rig.path(name)).unwrap();
        json!({"tools": {"type": "stdio", "command": "python3", "args": [ADVERSE_SERVER, rig.path(name), "plain"]}})
    };
    let (old, new) = (server("seen-old"), server("seen-new"));
    let mut rig = rig.plugin("old", &old).plugin("new", &new);
    prompt(&rig, "Be brief.");
    rig.only_plugins(&["odd", "old"]);
    rig
}

fn prompt(rig: &Rig, text: &str) {
    let folder = rig.path("odd").join(NAMESPACE).join("prompts");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("rules.md"), format!("---\nid: rules\nextends: rules\n---\n\n{text}\n")).unwrap();
}

fn lines(rig: &Rig, file: &str) -> usize {
    fs::read_to_string(rig.path(file)).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn fifty_tasks_go_on_with_the_next_configuration() {
    let Some(mut estate) = Estate::over(rig()).await else { return };
    let (server, worker) = (estate.server().await, estate.worker().await);
    fs::write(estate.rig.path("seen-old/hold-read"), "").unwrap();
    estate.rig.hold("act");
    let begun = begin(&estate.rig, &server.ada(), || model_calls(&worker.log()).len()).await;
    assert_eq!(begun.len(), 50);

    estate.rig.only_plugins(&["new", "odd"]);
    prompt(&estate.rig, "Be thorough.");
    fs::write(estate.rig.path("model.toml"), script("thorough", "Farewell.", 0)).unwrap();
    estate.rig.config();
    let since = Instant::now();
    let (next_server, next_worker) = (estate.server().await, estate.worker().await);
    worker.stop().await;
    assert_eq!(server.stop().await.code, Some(0));
    recovered("50 tasks, processes replaced", since);
    estate.rig.release("act");
    let ada = next_server.ada();
    let groups = DOINGS.map(async |(doing, _)| {
        let theirs = begun.iter().filter(|(what, _)| *what == doing);
        join_all(theirs.map(|(_, task)| goes_on(&ada, doing, task))).await;
        recovered(&format!("50 tasks, those that do {doing:?} have gone on"), since);
    });
    join_all(groups).await;

    assert_eq!(estate.rig.called("act"), 5, "what may have acted is not tried again");
    assert_eq!(lines(&estate.rig, "seen-old/calls"), 10, "nobody starts a tool that is gone");
    assert!(lines(&estate.rig, "seen-new/calls") > 0, "the new tool is there");
    is_sound(&next_worker.log());
    next_worker.stop().await;
    assert_eq!(next_server.stop().await.code, Some(0));
}

/// Fifty tasks, each where it is to be when everything is replaced.
async fn begin(rig: &Rig, ada: &Api, model_calls: impl Fn() -> usize) -> Vec<(&'static str, Value)> {
    let mut tasks = Vec::new();
    for (doing, count) in DOINGS {
        // Those that are to be in the middle of a model call come when everything else is in its place.
        if doing == "think" {
            continue;
        }
        let sends = (0..count).map(|n| ada.send_off(message(&format!("{doing}-{n}"), doing)));
        tasks.extend(join_all(sends).await.into_iter().map(|task| (doing, task)));
    }
    for (doing, task) in &tasks {
        if ["hello", "ask"].contains(doing) {
            let task = ada.task_in(task["id"].as_str().unwrap(), "INPUT_REQUIRED").await;
            assert!(
                ["Hello. Bye.", "Which one?"].iter().any(|said| words(&task).starts_with(said)),
                "{task}"
            );
        }
    }
    until("all tools are at work", async || rig.called("act") == 5 && lines(rig, "seen-old/calls") == 10)
        .await;
    let (before, count) = (model_calls(), 10);
    let sends = (0..count).map(|n| ada.send_off(message(&format!("think-{n}"), "think")));
    tasks.extend(join_all(sends).await.into_iter().map(|task| ("think", task)));
    until("the models are at work", async || model_calls() >= before + count).await;
    tasks
}

/// What becomes of a task under the new configuration.
async fn goes_on(ada: &Api, doing: &str, task: &Value) {
    let id = task["id"].as_str().unwrap();
    let said = |task: &Value| words(task).to_owned();
    let more = async |text: &str| ada.send(reply(&format!("{id}-{text}"), text, task)).await;
    match doing {
        "hello" => {
            assert_eq!(said(&more("use the old tool").await), "That is all. Farewell.");
            assert_eq!(said(&more("use the new tool").await), "That is all. Farewell.");
        }
        "ask" => assert_eq!(said(&more("a").await), "Hello. Farewell."),
        "think" => wait(ada, id, "Thought. Farewell.").await,
        "act" => wait(ada, id, "Nobody knows. Farewell.").await,
        _ => wait(ada, id, "That is all. Farewell.").await,
    }
    assert_eq!(state(&ada.task(id).await), "INPUT_REQUIRED");
    // The log of a task that has ended can be read to its end.
    ada.ok("CancelTask", json!({"id": id})).await;
    let calls = tool_calls(ada, task).await;
    let states: Vec<_> = calls.iter().map(|call| call["state"].as_str().unwrap()).collect();
    let expected: &[&str] = match doing {
        "hello" => &["failed", "succeeded"],
        "act" => &["outcome_unknown"],
        "ask" => &["succeeded"],
        "think" => &[],
        _ => &["failed"],
    };
    assert_eq!(states, expected, "{doing}: {calls:?}");
}

async fn wait(ada: &Api, id: &str, wanted: &str) {
    let task = ada.task_in(id, "INPUT_REQUIRED").await;
    assert_eq!(words(&task), wanted, "{task}");
}
