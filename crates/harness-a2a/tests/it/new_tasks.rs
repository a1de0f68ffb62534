//! What a first message makes: ids, extension, lifecycle, mode.

use harness_model::{Lifecycle, ParticipantId, ParticipantRole, StartTask, TaskMode};
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, brief, message},
    server::{Server, start, start_with},
};

async fn started(server: &Server, message: Value) -> StartTask {
    server.caller(Binding::JsonRpc, "ada").send(message).await;
    server.engine.started().pop().unwrap()
}

#[tokio::test]
async fn without_an_envelope_the_text_says_what_is_wanted() {
    let server = start().await;
    let start = started(&server, message("m", " Find the order\nand tell me ")).await;
    assert_eq!(
        (start.extension.name.as_str(), start.extension.goal.as_str()),
        ("Find the order", "Find the order\nand tell me")
    );
    let roles: Vec<(&str, ParticipantRole)> =
        start.extension.participants.iter().map(|p| (p.id.as_str(), p.role)).collect();
    assert_eq!(roles, [("ada", ParticipantRole::Reporter), ("me", ParticipantRole::Assignee)]);
    assert_eq!((start.lifecycle, start.mode, start.depth), (Lifecycle::Conversation, TaskMode::Agent, 0));
    assert!(!start.awaits_message);
}

#[tokio::test]
async fn an_envelope_describes_the_task_and_leaves_the_message() {
    let server = start_with(|config| config.lifecycle = Lifecycle::Delegated).await;
    let payload = json!({"name": "n", "goal": "g", "depth": 2, "participants": [
        {"id": "ada", "kind": "human", "role": "admin"}]});
    let task = server.caller(Binding::Rest, "ada").send(brief("m", payload, "hello")).await;
    let start = server.engine.started().pop().unwrap();
    assert_eq!((start.extension.name.as_str(), start.depth), ("n", 2));
    assert_eq!(start.lifecycle, Lifecycle::Delegated);
    assert_eq!(start.extension.participants[1].id, ParticipantId::from("me"));
    assert_eq!(task["history"][0]["parts"], json!([{"text": "hello"}]));
}

#[tokio::test]
async fn an_envelope_alone_starts_without_a_message_and_may_be_repeated() {
    let server = start().await;
    for binding in BOTH {
        let message = brief(&format!("{binding:?}"), json!({"name": "n", "goal": "g"}), "");
        let caller = server.caller(binding, "bob");
        let params = json!({"message": message});
        let outcome = caller.ok("SendMessage", params.clone()).await["task"].clone();
        assert_eq!(outcome["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        assert!(outcome.get("history").is_none(), "no message was told");
        assert_eq!(caller.ok("SendMessage", params).await["task"]["id"], outcome["id"]);
    }
    assert_eq!(server.engine.started().len(), 2);
    assert!(server.engine.started()[0].awaits_message);
}

#[tokio::test]
async fn somebody_elses_work_runs_no_model() {
    let server = start().await;
    let with = |role: &str| {
        json!({"name": "n", "goal": "g", "participants": [
        {"id": "ada", "kind": "human", "role": "reporter"}, {"id": "bob", "kind": "human", "role": role}]})
    };
    assert_eq!(started(&server, brief("a", with("assignee"), "x")).await.mode, TaskMode::Participant);
    assert_eq!(started(&server, brief("b", with("watcher"), "x")).await.mode, TaskMode::Agent);
}

#[tokio::test]
async fn only_delegators_choose_how_a_task_is_run() {
    let server = start_with(|config| {
        config.delegators = vec![ParticipantId::from("boss")];
        config.models = vec!["small".to_owned()];
        config.reasoning_efforts = vec!["low".to_owned()];
    })
    .await;
    let payload = |key: &str, value: &str| json!({"name": "n", "goal": "g", key: value});
    for binding in BOTH {
        for (key, value) in [("lifecycle", "delegated"), ("model", "small"), ("reasoning_effort", "low")] {
            let params = json!({"message": brief("x", payload(key, value), "hello")});
            let refusal = server.caller(binding, "ada").refused("SendMessage", params).await;
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{key}");
        }
        for (key, value) in [("lifecycle", "forever"), ("model", "huge"), ("reasoning_effort", "high")] {
            let params = json!({"message": brief("y", payload(key, value), "hello")});
            let refusal = server.caller(binding, "boss").refused("SendMessage", params).await;
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{key} {value}");
        }
    }
    assert!(server.engine.started().is_empty(), "nothing was created");
    let all = json!({"name": "n", "goal": "g", "lifecycle": "delegated", "model": "small", "reasoning_effort": "low"});
    server.caller(Binding::JsonRpc, "boss").send(brief("z", all, "hello")).await;
    let start = server.engine.started().pop().unwrap();
    assert_eq!(start.lifecycle, Lifecycle::Delegated);
    assert_eq!((start.model.as_deref(), start.reasoning_effort.as_deref()), (Some("small"), Some("low")));
}

#[tokio::test]
async fn envelopes_that_are_not_valid_create_nothing() {
    let server = start().await;
    let envelope = |data: Value| {
        json!({"messageId": "m", "role": "ROLE_USER", "parts": [
            {"data": data, "mediaType": "application/vnd.tiny-harness.event+json"}]})
    };
    let huge: Vec<Value> = (0..64).map(|_| json!({"text": "x".repeat(2_000)})).collect();
    let table = [
        (json!({"kind": "task"}), "invalid event envelope: "),
        (json!({"kind": "task", "payload": {}, "more": 1}), "invalid event envelope: "),
        (json!({"kind": "tusk", "payload": {}}), "invalid event envelope: "),
        (json!("task"), "invalid event envelope: "),
        (json!({"kind": "task", "payload": {"name": "n"}}), "invalid task extension: "),
        (json!({"kind": "task", "payload": {"name": " ", "goal": "g"}}), "invalid task extension: "),
        (json!({"kind": "task", "payload": {"name": "n", "goal": "g", "x": 1}}), "invalid task extension: "),
        (
            json!({"kind": "task", "payload": {"name": "n", "goal": "g", "acceptance_criteria": huge}}),
            "invalid task extension: ",
        ),
    ];
    for binding in BOTH {
        for (data, beginning) in &table {
            let params = json!({"message": envelope(data.clone())});
            let refusal = server.caller(binding, "ada").refused("SendMessage", params).await;
            assert_eq!(refusal.reason, "INVALID_PARAMS");
            assert!(refusal.message.starts_with(beginning), "{}", refusal.message);
        }
    }
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn an_update_in_a_first_message_stays_in_it() {
    let server = start().await;
    let mut message = message("m", "hello");
    let update = json!({"data": {"kind": "status_update", "payload": {"a": 1}},
        "mediaType": "application/vnd.tiny-harness.event+json"});
    message["parts"].as_array_mut().unwrap().push(update.clone());
    let task = server.caller(Binding::JsonRpc, "ada").send(message).await;
    assert_eq!(task["history"][0]["parts"][1], update);
}
