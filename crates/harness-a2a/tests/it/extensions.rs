//! Extensions: those of the card, those that it requires, and those that an answer goes by.

use harness_a2a::{AgentClient, ClientLimits, Extension, wire::Task};
use harness_model::ParticipantId;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, message},
    server::{Server, start, start_with},
    sign_in::OPERATIONS,
};

const TASK: &str = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext/task/v1";
const A2UI: &str = "https://a2ui.org/a2a-extension/a2ui/v0.9.1";

/// The answer to an operation on nothing in particular: its extensions, its body, and its status.
async fn asked(server: &Server, binding: Binding, operation: &str, spoken: &[&str]) -> (String, Value, u16) {
    let message = message(&format!("{binding:?}-{operation}-{spoken:?}"), "finish");
    let params = json!({"message": message, "id": "x", "taskId": "x", "url": "https://example.com/"});
    // A listing takes none of these, and not all of them fit into a query.
    let params = if operation == "ListTasks" { json!({}) } else { params };
    let params = if operation == "GetTask" { json!({"id": "x"}) } else { params };
    let mut request = server.caller(binding, "ada").request(operation, params);
    for value in spoken {
        request = request.header("a2a-extensions", *value);
    }
    let response = request.send().await.unwrap();
    let activated = response.headers().get("a2a-extensions").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body = serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null);
    (activated.unwrap_or_default(), body, status)
}

#[tokio::test]
async fn only_the_extensions_of_the_card_are_accepted() {
    let server = start().await;
    for binding in BOTH {
        for operation in OPERATIONS {
            let known = format!("{TASK}, {A2UI}");
            for spoken in [&[known.as_str()][..], &[""], &[A2UI, TASK, TASK]] {
                let (_, body, _) = asked(&server, binding, operation, spoken).await;
                assert!(!body.to_string().contains("extension(s)"), "{binding:?} {operation} {body}");
            }
            let (_, body, _) = asked(&server, binding, operation, &["https://example.com/x", TASK]).await;
            let text = body["error"]["message"].as_str().unwrap();
            assert_eq!(text, "unsupported A2A extension(s): https://example.com/x", "{operation}");
            assert!(body.to_string().contains("UNSUPPORTED_OPERATION"), "{body}");
        }
    }
}

#[tokio::test]
async fn an_answer_says_by_which_extensions_it_goes() {
    let server = start().await;
    for binding in BOTH {
        for operation in OPERATIONS {
            for (spoken, activated) in [
                (&[][..], String::new()),
                (&[TASK], TASK.to_owned()),
                // In the order of the card, each once, from however many headers.
                (&[A2UI, TASK, " , ", A2UI], format!("{TASK}, {A2UI}")),
            ] {
                let (said, body, _) = asked(&server, binding, operation, spoken).await;
                assert_eq!(said, activated, "{binding:?} {operation} {body}");
            }
        }
    }
}

#[tokio::test]
async fn a_required_extension_has_to_be_named_on_every_operation() {
    let required = vec![Extension::Task, Extension::A2ui];
    let server = start_with(|config| config.card.required_extensions = required).await;
    let card = server.http.get(format!("{}/.well-known/agent-card.json", server.base)).send().await.unwrap();
    let card: Value = serde_json::from_str(&card.text().await.unwrap()).unwrap();
    let listed = card["capabilities"]["extensions"].as_array().unwrap();
    assert_eq!(listed.iter().map(|each| each["required"] == true).collect::<Vec<_>>(), [true, false, true]);
    for binding in BOTH {
        for operation in OPERATIONS {
            for (spoken, missing) in [(&[][..], format!("{TASK}, {A2UI}")), (&[TASK], A2UI.to_owned())] {
                let (said, body, status) = asked(&server, binding, operation, spoken).await;
                let error = &body["error"];
                assert!(error["message"].as_str().unwrap().ends_with(&missing), "{operation} {error}");
                assert!(error.to_string().contains("EXTENSION_SUPPORT_REQUIRED"), "{operation} {error}");
                match binding {
                    Binding::JsonRpc => assert_eq!((&error["code"], status), (&json!(-32008), 200)),
                    Binding::Rest => {
                        assert_eq!((&error["status"], status), (&json!("FAILED_PRECONDITION"), 400))
                    }
                }
                assert_eq!(said, "");
            }
            let (_, body, _) = asked(&server, binding, operation, &[TASK, A2UI]).await;
            assert!(!body.to_string().contains("EXTENSION_SUPPORT_REQUIRED"), "{operation} {body}");
        }
    }
    assert_eq!(server.engine.started().len(), 4, "two sends that named both, over each binding");
}

#[tokio::test]
async fn the_client_names_what_it_knows_of_the_card() {
    let server = start_with(|config| config.card.required_extensions = Extension::ALL.into()).await;
    let ada = Some(ParticipantId::from("ada"));
    let client = AgentClient::connect(&server.base, ada, ClientLimits::default()).await.unwrap();
    let request = serde_json::from_value(json!({"message": message("m", "finish")})).unwrap();
    let sent = serde_json::to_value(client.send(request).await.unwrap()).unwrap();
    let task: Task = client.get(sent["task"]["id"].as_str().unwrap(), None).await.unwrap();
    assert_eq!(task.id, sent["task"]["id"]);
    let bare = server.caller(Binding::Rest, "ada").refused("GetTask", json!({"id": task.id})).await;
    assert_eq!(bare.reason, "EXTENSION_SUPPORT_REQUIRED");
    let request = server
        .caller(Binding::Rest, "ada")
        .request("SendStreamingMessage", json!({"message": message("n", "finish")}));
    let all = Extension::ALL.map(Extension::uri).join(",");
    let text = request.header("a2a-extensions", all).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("TASK_STATE_COMPLETED"), "{text}");
}
