//! Security schemes: who signs in, and what happens to everybody else.

use harness_a2a::{A2aConfig, SecurityScheme, StaticToken};
use harness_model::{ParticipantId, Secret};
use http::HeaderName;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, message},
    server::{Server, start_with},
};

pub(crate) const OPERATIONS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

fn secured(config: &mut A2aConfig) {
    let token = |secret: &str, participant: &str| StaticToken {
        secret: Secret::new(secret),
        participant: ParticipantId::from(participant),
    };
    config.anonymous = Some(ParticipantId::from("nobody"));
    config.security = vec![
        SecurityScheme::Bearer {
            tokens: vec![token("ada-1", "ada"), token("ada-2", "ada"), token("", "eve")],
        },
        SecurityScheme::ApiKey {
            header: HeaderName::from_static("x-api-key"),
            tokens: vec![token("bob key", "bob"), token("me-key", "me")],
        },
    ];
}

/// A message id, the participant in the metadata, the headers, and who it is sent by or why it is refused.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Result<&'a str, &'a str>);

/// A request with these headers: its status, its challenge and its body.
pub(crate) async fn exchange(
    server: &Server,
    binding: Binding,
    (operation, params): (&str, Value),
    headers: &[(&str, &str)],
) -> (u16, String, Value) {
    let mut request = server.caller(binding, "").request(operation, params);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    let challenge =
        response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, challenge.unwrap_or_default(), body)
}

/// The task of a send, or the message of the refusal.
pub(crate) fn task_or_text(binding: Binding, body: &Value) -> Result<Value, String> {
    match body.get("error") {
        Some(error) => Err(error["message"].as_str().unwrap().to_owned()),
        None if binding == Binding::JsonRpc => Ok(body["result"]["task"].clone()),
        None => Ok(body["task"].clone()),
    }
}

#[tokio::test]
async fn the_card_says_how_to_sign_in() {
    let server = start_with(secured).await;
    let get = async |path: &str| {
        let response = server.http.get(format!("{}{path}", server.base)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path} is for everybody");
        response.text().await.unwrap()
    };
    let card: Value = serde_json::from_str(&get("/.well-known/agent-card.json").await).unwrap();
    let schemes = json!({
        "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}},
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
    });
    assert_eq!(card["securitySchemes"], schemes);
    let requirements = json!([{"schemes": {"bearer": {"list": []}}}, {"schemes": {"apiKey": {"list": []}}}]);
    assert_eq!(card["securityRequirements"], requirements);
    assert!(!card.to_string().contains("ada-1"));
    get("/healthz").await;
    get("/ui/tasks").await;
}

#[tokio::test]
async fn pages_of_listed_origins_may_sign_in_too() {
    let server = start_with(|config| {
        secured(config);
        config.cors_origins = vec!["https://ui.example".to_owned()];
    })
    .await;
    let asked = server.http.request(reqwest::Method::OPTIONS, format!("{}/tasks", server.base));
    let asked = asked.header("origin", "https://ui.example").header("access-control-request-method", "GET");
    let asked = asked.header("access-control-request-headers", "authorization,x-api-key");
    let answer = asked.send().await.unwrap();
    let allowed = answer.headers()["access-control-allow-headers"].to_str().unwrap();
    for header in ["authorization", "x-api-key", "a2a-version", "x-participant-id"] {
        assert!(allowed.split(',').any(|name| name == header), "{header}: {allowed}");
    }
    let refused = server.http.get(format!("{}/tasks", server.base)).header("origin", "https://ui.example");
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.headers()["access-control-expose-headers"], "a2a-extensions,www-authenticate");
}

#[tokio::test]
async fn every_operation_asks_for_credentials() {
    let server = start_with(secured).await;
    let wrong: [&[(&str, &str)]; 10] = [
        &[],
        &[("authorization", "Bearer ada-3")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Basic ada-1")],
        &[("authorization", "ada-1")],
        &[("authorization", "Bearer bob key")],
        &[("x-api-key", "ada-1")],
        &[("x-api-key", "")],
        &[("authorization", "Bearer ada-1"), ("authorization", "Bearer ada-1")],
        &[("authorization", "Bearer ada-1"), ("x-api-key", "bob key")],
    ];
    let params =
        json!({"message": message("m", "hello"), "id": "t", "taskId": "t", "url": "https://a.example/"});
    for binding in BOTH {
        for operation in OPERATIONS {
            let given = if operation == "ListTasks" { json!({}) } else { params.clone() };
            for headers in wrong {
                let (status, challenge, body) =
                    exchange(&server, binding, (operation, given.clone()), headers).await;
                assert_eq!(status, 401, "{operation} {headers:?}");
                let expected = "Bearer realm=\"a2a\", ApiKey realm=\"a2a\", header=\"x-api-key\"";
                assert_eq!(challenge, expected);
                match binding {
                    Binding::JsonRpc => {
                        assert_eq!((&body["id"], &body["error"]["code"]), (&json!("r-1"), &json!(-32000)))
                    }
                    Binding::Rest => assert_eq!(body["error"]["status"], "UNAUTHENTICATED"),
                }
            }
        }
    }
    // Before anything else is looked at.
    let garbage = server.http.post(format!("{}/", server.base)).body("{").send().await.unwrap();
    assert_eq!(garbage.status().as_u16(), 401);
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn credentials_name_the_participant_and_assertions_must_agree() {
    let server = start_with(secured).await;
    for binding in BOTH {
        let send = |id: &str, metadata: &str| {
            let mut message = message(&format!("{binding:?}{id}"), "hello");
            if !metadata.is_empty() {
                message["metadata"] = json!({"participant_id": metadata});
            }
            ("SendMessage", json!({"message": message}))
        };
        let ada = ("authorization", "bearer  ada-1");
        let table: [Case; 8] = [
            ("1", "", &[ada], Ok("ada")),
            ("2", "ada", &[ada, ("x-participant-id", "ada")], Ok("ada")),
            ("3", "", &[("authorization", "Bearer ada-2")], Ok("ada")),
            ("4", "", &[("x-api-key", "bob key")], Ok("bob")),
            ("5", "bob", &[ada], Err("not the one that signed in")),
            ("6", "", &[ada, ("x-participant-id", "bob")], Err("not the one that signed in")),
            ("7", "ada", &[ada, ("x-participant-id", "bob")], Err("not the one that signed in")),
            ("8", "", &[("x-api-key", "me-key")], Err("this agent itself")),
        ];
        for (id, metadata, headers, expected) in table {
            let (_, _, body) = exchange(&server, binding, send(id, metadata), headers).await;
            match (task_or_text(binding, &body), expected) {
                (Ok(task), Ok(participant)) => {
                    assert_eq!(task["history"][0]["metadata"]["participant_id"], participant);
                }
                (Err(text), Err(expected)) => assert!(text.contains(expected), "{id}: {text}"),
                (got, _) => panic!("{id}: {got:?}"),
            }
        }
    }
}

#[tokio::test]
async fn who_signs_in_sees_only_their_own_tasks() {
    let server = start_with(secured).await;
    for binding in BOTH {
        let ada = [("authorization", "Bearer ada-1")];
        let send = ("SendMessage", json!({"message": message(&format!("{binding:?}"), "hello")}));
        let (_, _, body) = exchange(&server, binding, send, &ada).await;
        let id = task_or_text(binding, &body).unwrap()["id"].clone();
        let get = |id: &Value| ("GetTask", json!({"id": id}));
        let (_, _, own) = exchange(&server, binding, get(&id), &ada).await;
        assert!(own.to_string().contains("INPUT_REQUIRED"));
        let bob = [("x-api-key", "bob key")];
        let foreign = exchange(&server, binding, get(&id), &bob).await;
        let missing = exchange(&server, binding, get(&json!("no-such-task")), &bob).await;
        assert_eq!(foreign, missing);
    }
}
