//! Who asks, and what they see.

use harness_model::ParticipantId;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, message, reply},
    server::{start, start_with},
};

fn by(mut message: Value, participant: &str) -> Value {
    message["metadata"] = json!({"participant_id": participant});
    message
}

#[tokio::test]
async fn somebody_must_be_asserted() {
    let server = start().await;
    for binding in BOTH {
        for message in [message("m", "hello"), by(message("m", "hello"), "")] {
            let refusal =
                server.caller(binding, "").refused("SendMessage", json!({"message": message})).await;
            assert_eq!(
                (refusal.reason.as_str(), refusal.message.as_str()),
                ("INVALID_PARAMS", "no participant asserted")
            );
        }
    }
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn metadata_wins_over_the_header_and_the_header_is_copied() {
    let server = start().await;
    for binding in BOTH {
        for (header, metadata, expected) in [("ada", "", "ada"), ("", "bob", "bob"), ("ada", "bob", "bob")] {
            let id = format!("{binding:?}-{header}-{metadata}");
            let task = server.caller(binding, header).send(by(message(&id, "hello"), metadata)).await;
            assert_eq!(task["history"][0]["metadata"]["participant_id"], expected);
            let extension = &task["metadata"]["io.github.madarauchiha-314.tiny-harness/task"];
            assert_eq!(extension["participants"][0]["id"], expected);
        }
    }
}

#[tokio::test]
async fn a_task_of_others_is_a_task_that_does_not_exist() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(by(message(&format!("{binding:?}"), "hello"), "ada")).await;
        let missing = json!({"id": "0badcafe-0000-8000-8000-000000000000"});
        for caller in ["bob", ""] {
            let caller = server.caller(binding, caller);
            for operation in ["GetTask", "CancelTask", "SubscribeToTask"] {
                let foreign = caller.refused(operation, json!({"id": task["id"]})).await;
                let absent = caller.refused(operation, missing.clone()).await;
                assert_eq!(foreign.reason, "TASK_NOT_FOUND", "{operation}");
                assert_eq!(foreign, absent, "{operation}");
            }
            for operation in ["SendMessage", "SendStreamingMessage"] {
                // The assertion in the message does not open the task; the header does.
                let send = |task: &Value| json!({"message": by(reply("f", "hello", task), "ada")});
                let foreign = caller.refused(operation, send(&task)).await;
                assert_eq!(foreign.reason, "TASK_NOT_FOUND");
                assert_eq!(foreign, caller.refused(operation, send(&missing)).await);
            }
            assert_eq!(caller.ok("ListTasks", json!({})).await["tasks"], json!([]));
        }
        assert_eq!(ada.ok("GetTask", json!({"id": task["id"]})).await["id"], task["id"]);
    }
}

#[tokio::test]
async fn nobody_speaks_as_the_agent_itself() {
    let server = start().await;
    for binding in BOTH {
        let task = server.caller(binding, "ada").send(message(&format!("{binding:?}"), "hello")).await;
        let me = server.caller(binding, "me");
        for (operation, params) in [
            ("SendMessage", json!({"message": message("x", "hello")})),
            ("SendMessage", json!({"message": reply("x", "hello", &task)})),
            ("GetTask", json!({"id": task["id"]})),
            ("CancelTask", json!({"id": task["id"]})),
            ("ListTasks", json!({})),
        ] {
            assert_eq!(me.refused(operation, params).await.reason, "INVALID_PARAMS", "{operation}");
        }
        let posing = json!({"message": by(message("y", "hello"), "me")});
        assert_eq!(
            server.caller(binding, "ada").refused("SendMessage", posing).await.reason,
            "INVALID_PARAMS"
        );
    }
}

#[tokio::test]
async fn a_configured_anonymous_participant_stands_in_for_nobody() {
    let server = start_with(|config| config.anonymous = Some(ParticipantId::from("guest"))).await;
    for binding in BOTH {
        let nobody = server.caller(binding, "");
        let task = nobody.send(message(&format!("{binding:?}-1"), "hello")).await;
        assert_eq!(task["history"][0]["metadata"]["participant_id"], "guest");
        let again = nobody.send(reply(&format!("{binding:?}-2"), "hello", &task)).await;
        assert_eq!(again["id"], task["id"]);
        assert_eq!(nobody.ok("GetTask", json!({"id": task["id"]})).await["id"], task["id"]);
        let ada = server.caller(binding, "ada");
        assert_eq!(ada.refused("GetTask", json!({"id": task["id"]})).await.reason, "TASK_NOT_FOUND");
        let garbage = server.caller(binding, "a b");
        assert_eq!(garbage.refused("GetTask", json!({"id": task["id"]})).await.reason, "INVALID_PARAMS");
    }
}
