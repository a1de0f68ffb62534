//! A first message that is sent again, by clients that got no answer.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    api::{Api, BOTH, Binding, message, state},
    rig::Rig,
};

/// Clients that send at once.
const AT_ONCE: usize = 10;

const SCRIPT: &str = r#"
[[turns]]
delay_ms = 50
text = "You said: {{message_text}}"
"#;

/// The answers to ten equal first messages, over both bindings.
async fn ten_answers(apis: &[Api]) -> Vec<Value> {
    let send = |at: usize| {
        let api = apis[at % apis.len()].clone();
        async move { api.send(message("first", "hello")).await }
    };
    join_all((0..AT_ONCE).map(send)).await
}

async fn task_ids(api: &Api) -> Vec<String> {
    let listed = api.ok("ListTasks", json!({})).await;
    let ids = listed["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// One task, ten equal answers, and nothing of it for anybody else.
async fn check_one_task(apis: &[Api], other: &Api, answers: &[Value]) {
    let (first, rest) = answers.split_first().unwrap();
    assert_eq!(state(first), "COMPLETED");
    for answer in rest {
        assert_eq!(answer, first);
    }
    let id = first["id"].as_str().unwrap();
    assert_eq!(task_ids(&apis[0]).await, [id]);

    let theirs = other.send(message("first", "hello")).await;
    assert_ne!(theirs["id"], first["id"]);
    assert_ne!(theirs["contextId"], first["contextId"]);
    assert_eq!(task_ids(other).await, [theirs["id"].as_str().unwrap()]);
    let refusal = other.refused("GetTask", json!({"id": id})).await;
    assert_eq!((refusal.reason.as_str(), refusal.message.as_str()), ("TASK_NOT_FOUND", "task not found"));
    assert_eq!(task_ids(&apis[0]).await, [id], "and the other way round");
}

#[tokio::test]
async fn ten_equal_first_messages_are_one_task() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let apis = BOTH.map(|binding| server.api(binding, "ada"));
    let answers = ten_answers(&apis).await;
    assert_eq!(server.model_calls(), 1, "the model was asked once");
    check_one_task(&apis, &server.api(Binding::Rest, "bob"), &answers).await;
}

#[tokio::test]
async fn a_first_message_that_was_accepted_and_not_answered_is_known() {
    // The first commit is the acceptance; later ones are somewhere on the way to the answer.
    for point in ["before:1", "after:1", "after:2", "before:4"] {
        let rig = Rig::new(SCRIPT);
        let server = rig.serve_with(["--crash-at", point]).await;
        let apis = BOTH.map(|binding| server.api(binding, "ada"));
        let unanswered = join_all((0..AT_ONCE).map(|at| {
            let request =
                apis[at % apis.len()].request("SendMessage", &json!({"message": message("first", "hello")}));
            async move { request.send().await.and_then(reqwest::Response::error_for_status).is_err() }
        }));
        assert_eq!(unanswered.await, [true; AT_ONCE], "{point}: nobody got an answer");
        assert!(server.process.ended().await.was_killed(), "{point}");

        let server = rig.serve().await;
        let apis = BOTH.map(|binding| server.api(binding, "ada"));
        let answers = ten_answers(&apis).await;
        check_one_task(&apis, &server.api(Binding::JsonRpc, "bob"), &answers).await;
    }
}
