//! The four operations on push notification configurations.

use harness_a2a::{A2aConfig, PushKey};
use harness_model::{Secret, TaskId};
use harness_ports::RecordKind;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, Caller, brief, message},
    server::{Server, start, start_with},
};

const CREATE: &str = "CreateTaskPushNotificationConfig";
const GET: &str = "GetTaskPushNotificationConfig";
const LIST: &str = "ListTaskPushNotificationConfigs";
const DELETE: &str = "DeleteTaskPushNotificationConfig";

fn with_key(config: &mut A2aConfig) {
    let key = Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    config.push_key = Some(PushKey::from_base64(&key).unwrap());
}

async fn task_of(caller: Caller<'_>, id: &str) -> Value {
    caller.send(message(id, "hello")).await["id"].clone()
}

async fn records(server: &Server, task: &Value) -> Vec<Value> {
    let task = TaskId::from(task.as_str().unwrap());
    let records = server.store.records(RecordKind::PushConfig, &task, 99).await.unwrap();
    records.into_iter().map(|record| record.value).collect()
}

#[tokio::test]
async fn the_card_declares_what_is_there() {
    for (server, declared) in [(start().await, false), (start_with(with_key).await, true)] {
        let url = format!("{}/.well-known/agent-card.json", server.base);
        let text = server.http.get(url).send().await.unwrap().text().await.unwrap();
        let card: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(card["capabilities"]["pushNotifications"], declared);
    }
}

#[tokio::test]
async fn a_configuration_is_kept_and_its_secrets_are_never_shown() {
    let server = start_with(with_key).await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = task_of(ada, &format!("{binding:?}")).await;
        let config = json!({
            "taskId": task, "id": "mine", "url": "https://hooks.example/in?x=1", "token": "tok-secret",
            "authentication": {"scheme": "Bearer", "credentials": "cred-secret"},
        });
        let shown = json!({"taskId": task, "id": "mine", "url": "https://hooks.example/in?x=1",
            "authentication": {"scheme": "Bearer"}});
        assert_eq!(ada.ok(CREATE, config).await, shown);
        let one = json!({"taskId": task, "id": "mine"});
        assert_eq!(ada.ok(GET, one.clone()).await, shown);
        assert_eq!(ada.ok(LIST, json!({"taskId": task})).await, json!({"configs": [shown]}));
        let kept = records(&server, &task).await;
        assert!(!json!(kept).to_string().contains("secret"), "{kept:?}");
        assert_eq!(ada.ok(DELETE, one.clone()).await, json!({}));
        assert_eq!(ada.ok(DELETE, one.clone()).await, json!({}), "again");
        assert_eq!(ada.refused(GET, one).await.reason, "TASK_NOT_FOUND");
        assert_eq!(ada.ok(LIST, json!({"taskId": task})).await, json!({}));
        assert!(records(&server, &task).await.is_empty());
    }
}

#[tokio::test]
async fn ids_are_made_up_when_none_is_given_and_the_same_id_replaces() {
    let server = start_with(with_key).await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = task_of(ada, &format!("{binding:?}")).await;
        let config = |url: &str| json!({"taskId": task, "url": url});
        let first = ada.ok(CREATE, config("https://a.example/")).await;
        let second = ada.ok(CREATE, config("https://b.example/")).await;
        assert_ne!(first["id"], second["id"]);
        let mut again = config("https://c.example/");
        again["id"] = first["id"].clone();
        ada.ok(CREATE, again).await;
        let configs = ada.ok(LIST, json!({"taskId": task})).await["configs"].clone();
        let mut urls: Vec<&str> =
            configs.as_array().unwrap().iter().map(|config| config["url"].as_str().unwrap()).collect();
        urls.sort_unstable();
        assert_eq!(urls, ["https://b.example/", "https://c.example/"]);
    }
}

#[tokio::test]
async fn listings_have_pages_and_a_participant_has_a_limit() {
    let server = start_with(with_key).await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = task_of(ada, &format!("{binding:?}")).await;
        let config =
            |n: usize| json!({"taskId": task, "id": format!("c{n:02}"), "url": "https://a.example/"});
        for n in 0..16 {
            ada.ok(CREATE, config(n)).await;
        }
        assert_eq!(ada.refused(CREATE, config(16)).await.reason, "INVALID_PARAMS");
        ada.ok(CREATE, config(3)).await;
        if binding == Binding::Rest {
            continue;
        }
        let mut ids = Vec::new();
        let mut params = json!({"taskId": task, "pageSize": 7});
        for expected in [7, 7, 2] {
            let page = ada.ok(LIST, params.clone()).await;
            let configs = page["configs"].as_array().unwrap();
            assert_eq!(configs.len(), expected);
            ids.extend(configs.iter().map(|config| config["id"].as_str().unwrap().to_owned()));
            params["pageToken"] = page["nextPageToken"].clone();
        }
        assert_eq!(params["pageToken"], Value::Null, "the last page says so");
        assert_eq!(ids, (0..16).map(|n| format!("c{n:02}")).collect::<Vec<_>>());
        for wrong in [json!({"pageSize": -1}), json!({"pageToken": "***"})] {
            let mut params = json!({"taskId": task});
            params.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            assert_eq!(ada.refused(LIST, params).await.reason, "INVALID_PARAMS");
        }
    }
}

#[tokio::test]
async fn configurations_that_are_not_valid_are_refused_and_the_message_with_them() {
    let server = start_with(with_key).await;
    let table = [
        json!({"url": ""}),
        json!({"url": "ftp://hooks.example/"}),
        json!({"url": "http://127.0.0.1:9/"}),
        json!({"url": "http://[::ffff:10.0.0.1]/"}),
        json!({"url": "http://0x7f.1/"}),
        json!({"url": "http://169.254.169.254/latest"}),
        json!({"url": "http://ada:pw@hooks.example/"}),
        json!({"url": "https://a.example/", "id": "x".repeat(300)}),
        json!({"url": "https://a.example/", "token": "two\r\nlines"}),
        json!({"url": "https://a.example/", "token": "x".repeat(5_000)}),
        json!({"url": "https://a.example/", "authentication": {"scheme": "not one"}}),
        json!({"url": "https://a.example/", "authentication": {"scheme": "Bearer", "credentials": "\u{e4}"}}),
    ];
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = task_of(ada, &format!("{binding:?}")).await;
        let started = server.engine.started().len();
        for config in &table {
            let mut create = config.clone();
            create["taskId"] = task.clone();
            let refusal = ada.refused(CREATE, create).await;
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{config:.90}");
            assert!(!refusal.message.contains("two"), "a token is never repeated");
            let inline = json!({"message": message("inline", "hello"),
                "configuration": {"taskPushNotificationConfig": config}});
            assert_eq!(ada.refused("SendMessage", inline).await.reason, "INVALID_PARAMS", "{config:.90}");
        }
        assert_eq!(server.engine.started().len(), started);
        assert!(records(&server, &task).await.is_empty());
    }
}

#[tokio::test]
async fn others_see_neither_the_task_nor_the_configurations() {
    let server = start_with(with_key).await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let payload = json!({"name": "n", "goal": "g", "participants": [
            {"id": "ada", "kind": "human", "role": "reporter"}, {"id": "cleo", "kind": "human", "role": "watcher"}]});
        let task = ada.send(brief(&format!("{binding:?}"), payload, "hello")).await["id"].clone();
        ada.ok(CREATE, json!({"taskId": task, "id": "mine", "url": "https://a.example/"})).await;
        let request = |task: &Value| json!({"taskId": task, "id": "mine", "url": "https://b.example/"});
        for stranger in ["bob", ""] {
            let stranger = server.caller(binding, stranger);
            for operation in [CREATE, GET, LIST, DELETE] {
                let foreign = stranger.refused(operation, request(&task)).await;
                let missing = stranger.refused(operation, request(&json!("no-such-task"))).await;
                assert_eq!((foreign.reason.as_str(), &foreign), ("TASK_NOT_FOUND", &missing), "{operation}");
            }
        }
        // Who takes part has receivers of their own, under whatever id, and never touches those of others.
        let cleo = server.caller(binding, "cleo");
        assert_eq!(cleo.ok(LIST, json!({"taskId": task})).await, json!({}));
        assert_eq!(cleo.refused(GET, request(&task)).await.reason, "TASK_NOT_FOUND");
        cleo.ok(DELETE, request(&task)).await;
        cleo.ok(CREATE, request(&task)).await;
        let url = ada.ok(GET, request(&task)).await["url"].clone();
        assert_eq!(url, "https://a.example/");
    }
}
