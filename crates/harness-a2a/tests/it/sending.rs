//! SendMessage on both bindings.

use futures::{
    StreamExt,
    future::{Either, select},
};
use harness_model::{TaskId, TaskState};
use harness_ports::TaskFields;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, message, reply},
    server::{Server, start},
};

#[tokio::test]
async fn messages_that_are_not_valid_are_refused_and_nothing_is_created() {
    let server = start().await;
    let ok = message("m", "hello");
    let with = |key: &str, value: Value| {
        let mut changed = ok.clone();
        changed[key] = value;
        changed
    };
    let part = |part: Value| with("parts", json!([part]));
    let table = [
        json!({}),
        json!("text"),
        json!({"role": "ROLE_USER", "parts": [{"text": "a"}]}),
        json!({"messageId": "m", "parts": [{"text": "a"}]}),
        json!({"messageId": "m", "role": "ROLE_USER"}),
        with("messageId", json!("")),
        with("messageId", json!("m\n")),
        with("messageId", json!("m".repeat(300))),
        with("messageId", json!(5)),
        with("role", json!("user")),
        with("role", json!("ROLE_AGENT")),
        with("role", json!("ROLE_UNSPECIFIED")),
        with("parts", json!([])),
        with("parts", json!({})),
        with("parts", json!(vec![json!({"text": "a"}); 300])),
        with("metadata", json!([])),
        with("metadata", json!({"participant_id": 5})),
        with("metadata", json!({"participant_id": "a b"})),
        part(json!({})),
        part(json!({"text": 1})),
        part(json!({"text": "a", "url": "b"})),
        part(json!({"raw": "***"})),
        with("contextId", json!("c".repeat(300))),
    ];
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        for message in &table {
            for operation in ["SendMessage", "SendStreamingMessage"] {
                let refusal = caller.refused(operation, json!({"message": message})).await;
                assert_eq!(refusal.reason, "INVALID_PARAMS", "{message:.120}");
            }
        }
        let negative = json!({"message": ok, "configuration": {"historyLength": -1}});
        assert_eq!(caller.refused("SendMessage", negative).await.reason, "INVALID_PARAMS");
    }
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn media_types_are_those_of_the_card() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        for (media_type, accepted) in [
            ("", true),
            ("text/plain", true),
            ("Text/Plain; charset=utf-8", true),
            ("image/png", false),
            ("x", false),
        ] {
            let mut message = message(&format!("{binding:?}-{media_type}"), "");
            message["parts"] = json!([{"text": "hello", "mediaType": media_type, "filename": ""}]);
            let result = caller.call("SendMessage", json!({"message": message})).await;
            match result {
                Ok(answer) => {
                    assert!(accepted, "{media_type}");
                    let part = &answer["task"]["history"][0]["parts"][0];
                    assert_eq!(part.get("mediaType").is_some(), !media_type.is_empty(), "{part}");
                    assert!(part.get("filename").is_none(), "{part}");
                }
                Err(refusal) => {
                    assert!(!accepted, "{media_type}");
                    assert_eq!(refusal.reason, "CONTENT_TYPE_NOT_SUPPORTED");
                    assert!(refusal.message.contains("application/a2ui+json"));
                }
            }
        }
    }
}

#[tokio::test]
async fn a_send_answers_with_the_task_at_the_end_of_its_turn() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let task = caller.send(message(&format!("{binding:?}-1"), "hello")).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        assert_eq!(
            task["artifacts"][0]["parts"],
            json!([
            {"text": "Hello, ", "mediaType": "text/plain"}, {"text": "world.", "mediaType": "text/plain"}])
        );
        let again = caller.send(reply(&format!("{binding:?}-2"), "ask me", &task)).await;
        assert_eq!(again["id"], task["id"]);
        assert!(again["status"]["message"]["messageId"].as_str().unwrap().contains(":help:"));
        let ended = caller.send(reply(&format!("{binding:?}-3"), "finish", &task)).await;
        assert_eq!(ended["status"]["state"], "TASK_STATE_COMPLETED");
        let late = caller.refused("SendMessage", json!({"message": reply("late", "more", &task)})).await;
        assert_eq!(late.reason, "UNSUPPORTED_OPERATION");
    }
}

#[tokio::test]
async fn return_immediately_does_not_wait() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let params = json!({
            "message": message(&format!("{binding:?}"), "hold"), "configuration": {"returnImmediately": true}
        });
        let task = caller.ok("SendMessage", params).await["task"].clone();
        let state = task["status"]["state"].as_str().unwrap();
        assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state), "{state}");
    }
}

#[tokio::test]
async fn a_follow_up_waits_for_its_own_turn() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let task = caller.send(message(&format!("{binding:?}-1"), "hello")).await;
        let hold = json!({"message": reply(&format!("{binding:?}-2"), "hold", &task)});
        let sending = std::pin::pin!(caller.request("SendMessage", hold).send());
        let working = std::pin::pin!(wait_for_state(&server, &task, TaskState::Working));
        let Either::Right(((), sending)) = select(sending, working).await else {
            panic!("the answer came before the end of the turn")
        };
        server.engine.release();
        let answer = sending.await.unwrap().text().await.unwrap();
        assert!(answer.contains("released"), "{answer}");
    }
}

/// Waits until the task is in this state.
async fn wait_for_state(server: &Server, task: &Value, state: TaskState) {
    let id = TaskId::from(task["id"].as_str().unwrap());
    let mut log = server.store.follow(&id, None);
    loop {
        log.next().await.unwrap().unwrap();
        let snapshot = server.store.task(&id, TaskFields::BARE).await.unwrap().unwrap();
        if snapshot.record.status.state == state {
            return;
        }
    }
}

#[tokio::test]
async fn a_repeated_message_has_no_effect_and_gets_its_answer() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let first = message(&format!("{binding:?}-1"), "hello");
        let task = caller.send(first.clone()).await;
        let follow_up = reply(&format!("{binding:?}-2"), "finish", &task);
        let ended = caller.send(follow_up.clone()).await;
        assert_eq!(ended["status"]["state"], "TASK_STATE_COMPLETED");
        let history = ended["history"].as_array().unwrap().len();
        for repeated in [first, follow_up] {
            let again = caller.send(repeated).await;
            assert_eq!((&again["id"], &again["status"]), (&ended["id"], &ended["status"]));
            assert_eq!(again["history"].as_array().unwrap().len(), history);
        }
    }
    assert_eq!(server.engine.started().len(), 2);
}

#[tokio::test]
async fn tasks_and_contexts_must_fit() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let unknown = json!({"message": reply("u", "hello", &json!({"id": "no-such-task"}))});
        assert_eq!(caller.refused("SendMessage", unknown).await.reason, "TASK_NOT_FOUND");
        let mut first = message(&format!("{binding:?}-1"), "hello");
        first["contextId"] = json!("case-7");
        let task = caller.send(first).await;
        assert_eq!(task["contextId"], "case-7");
        let mut elsewhere = reply("e", "hello", &task);
        elsewhere["contextId"] = json!("case-8");
        assert_eq!(
            caller.refused("SendMessage", json!({"message": elsewhere})).await.reason,
            "INVALID_PARAMS"
        );
        let mut same = reply(&format!("{binding:?}-2"), "hello", &task);
        same["contextId"] = json!("case-7");
        assert_eq!(caller.send(same).await["contextId"], "case-7");
    }
    assert_eq!(server.engine.started().len(), 2, "an unknown task is never created");
}

#[tokio::test]
async fn history_is_as_long_as_asked_for() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let task = caller.send(message(&format!("{binding:?}-1"), "hello")).await;
        for (length, expected) in [(0, None), (1, Some(1)), (2, Some(2)), (99, Some(2))] {
            let got = caller.ok("GetTask", json!({"id": task["id"], "historyLength": length})).await;
            assert_eq!(got.get("history").map(|history| history.as_array().unwrap().len()), expected);
        }
        let params = json!({
            "message": reply(&format!("{binding:?}-2"), "hello", &task), "configuration": {"historyLength": 0}
        });
        assert!(caller.ok("SendMessage", params).await["task"].get("history").is_none());
        let negative = json!({"id": task["id"], "historyLength": -1});
        assert_eq!(caller.refused("GetTask", negative).await.reason, "INVALID_PARAMS");
    }
}

#[tokio::test]
async fn secrets_are_masked_before_anything_is_kept() {
    let server = start().await;
    let caller = server.caller(BOTH[0], "ada");
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "metadata": {"note": "hunter22", "interrupt": false},
        "parts": [{"text": "it is hunter22"}, {"data": {"deep": ["hunter22"]}}, {"url": "http://x/hunter22"},
            {"raw": "AAEC", "filename": "hunter22", "metadata": {"k": "hunter22"}}],
    });
    let task = caller.send(message).await;
    let kept = task["history"][0].to_string() + &task["metadata"].to_string();
    assert!(!kept.contains("hunter22"), "{kept}");
    assert_eq!(kept.matches("[REDACTED]").count(), 8, "{kept}");
    assert_eq!(task["history"][0]["parts"][3]["raw"], "AAEC");
}

#[tokio::test]
async fn what_the_agent_does_not_offer_is_refused() {
    let server = start().await;
    for binding in BOTH {
        let caller = server.caller(binding, "ada");
        let config = json!({"url": "http://127.0.0.1:1/", "taskId": "t", "id": "c"});
        for operation in ["Create", "Get", "List", "Delete"] {
            let plural = if operation == "List" { "s" } else { "" };
            let name = format!("{operation}TaskPushNotificationConfig{plural}");
            assert_eq!(caller.refused(&name, config.clone()).await.reason, "PUSH_NOTIFICATION_NOT_SUPPORTED");
        }
        let inline = json!({
            "message": message("p", "hello"), "configuration": {"taskPushNotificationConfig": config}
        });
        assert_eq!(caller.refused("SendMessage", inline).await.reason, "PUSH_NOTIFICATION_NOT_SUPPORTED");
        let card = caller.refused("GetExtendedAgentCard", Value::Null).await;
        assert_eq!(card.reason, "UNSUPPORTED_OPERATION");
    }
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn a_refusal_of_the_workflow_reaches_the_sender() {
    let server = start().await;
    server.engine.refuse("the inbox is full");
    for binding in BOTH {
        let refusal =
            server.caller(binding, "ada").refused("SendMessage", json!({"message": message("m", "x")})).await;
        assert_eq!(
            (refusal.reason.as_str(), refusal.message.as_str()),
            ("UNSUPPORTED_OPERATION", "the inbox is full")
        );
    }
}

#[tokio::test]
async fn names_of_the_proto_file_and_unknown_fields_are_accepted() {
    let server = start().await;
    for binding in BOTH {
        let params = json!({
            "message": {"message_id": format!("{binding:?}"), "role": "ROLE_USER", "task_id": null, "context_id": "",
                "parts": [{"text": "hello", "media_type": "text/plain", "new_field": 1}]},
            "configuration": {"history_length": 0, "return_immediately": false}, "later_version": {},
        });
        let task = server.caller(binding, "ada").ok("SendMessage", params).await["task"].clone();
        assert!(task.get("history").is_none());
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
}
