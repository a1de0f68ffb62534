//! Routes for operators: readiness, the picture of the last tick, purge; and what happens to those who watch.

use std::collections::BTreeMap;

use harness_a2a::{
    A2aConfig, ClientError, OwnRequests, PushKey, SecurityScheme, StaticToken, purge_task, receivers_behind,
};
use harness_model::{ParticipantId, Secret, TaskId, Timestamp};
use harness_ports::{Census, DeleteWhen, Record, RecordKind, TaskFields, Write, WriteBatch};
use harness_testkit::{Fault, FaultStore, MemoryStore};
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, Caller, message, outline},
    fake_engine::TickingClock,
    server::{Server, start, start_over, start_with},
};

const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn key(text: &str) -> PushKey {
    PushKey::from_base64(&Secret::new(text)).unwrap()
}

fn secured(config: &mut A2aConfig) {
    let token = StaticToken { secret: Secret::new("ada-1"), participant: ParticipantId::from("ada") };
    config.security = vec![SecurityScheme::Bearer { tokens: vec![token] }];
    config.push_key = Some(key(KEY));
}

fn own(server: &Server, key: PushKey) -> OwnRequests {
    OwnRequests { key, base_url: server.base.clone(), clock: std::sync::Arc::new(TickingClock::default()) }
}

async fn get(server: &Server, path: &str) -> (u16, String) {
    let response = server.http.get(format!("{}{path}", server.base)).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn commit(server: &Server, write: Write) {
    server.store.commit(WriteBatch::new(Timestamp::from_millis(0), vec![write])).await.unwrap();
}

async fn delete(server: &Server, task: &Value) {
    let task_id = TaskId::from(task.as_str().unwrap());
    commit(server, Write::DeleteTask { task_id, when: DeleteWhen::Always }).await;
}

async fn held(caller: Caller<'_>, id: &str) -> Value {
    let params = json!({"message": message(id, "hold"), "configuration": {"returnImmediately": true}});
    caller.ok("SendMessage", params).await["task"]["id"].clone()
}

#[tokio::test]
async fn readiness_is_true_until_the_process_drains() {
    let server = start().await;
    for _ in 0..2 {
        assert_eq!(get(&server, "/readyz").await, (200, "ok\n".to_owned()));
    }
    server.service.drain();
    assert_eq!(get(&server, "/readyz").await, (503, "draining\n".to_owned()));
    assert_eq!(get(&server, "/healthz").await, (200, "ok\n".to_owned()), "it is alive all the same");
    assert_eq!(
        server.caller(Binding::JsonRpc, "ada").send(message("m", "hi")).await["history"][0]["role"],
        "ROLE_USER"
    );
}

#[tokio::test]
async fn a_store_that_takes_no_writes_makes_the_process_unready() {
    let store = FaultStore::over(MemoryStore::new(), Fault::Fail { first: 2, last: 2 });
    let server = start_over(store, |_| {}).await;
    assert_eq!(get(&server, "/readyz").await.0, 200);
    assert_eq!(get(&server, "/readyz").await, (503, "the store takes no writes\n".to_owned()));
    assert_eq!(get(&server, "/readyz").await.0, 200, "the store works again");
}

#[tokio::test]
async fn the_picture_comes_from_the_store() {
    let server = start().await;
    let seen = async || serde_json::from_str::<Value>(&get(&server, "/_monitor").await.1).unwrap();
    assert_eq!(seen().await, json!({"tasks": []}), "before the first tick");
    let picture = json!({"at": "2026-01-01T00:00:00Z", "tasks": [{"task_id": "t"}], "pending_help": 1});
    commit(&server, Write::PutRecord(Record::of_process("other", json!(1)))).await;
    commit(&server, Write::PutRecord(Record::monitor(picture.clone()))).await;
    assert_eq!(seen().await, picture);
}

#[tokio::test]
async fn the_picture_is_for_those_who_sign_in() {
    let server = start_with(secured).await;
    let url = format!("{}/_monitor", server.base);
    let refused = server.http.get(&url).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 401);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer realm=\"a2a\"");
    assert!(!refused.text().await.unwrap().contains("tasks"));
    let seen = server.http.get(&url).bearer_auth("ada-1").send().await.unwrap();
    assert_eq!(seen.status().as_u16(), 200);
    assert_eq!(get(&server, "/readyz").await.0, 200, "probes have no credentials");
}

#[tokio::test]
async fn a_purge_ends_the_task_and_leaves_nothing() {
    let server = start_with(|config| config.push_key = Some(key(KEY))).await;
    let ada = server.caller(Binding::JsonRpc, "ada");
    let task = held(ada, "m-1").await;
    let mut watching = ada.open("SubscribeToTask", json!({"id": task}), None).await;
    assert!(watching.next().await.is_some());
    let id = task.as_str().unwrap();
    let deleted = purge_task(&server.base, id, &own(&server, key(KEY))).await.unwrap();
    let rows = ["tasks", "workflows", "log_entries", "blocks", "deliveries"];
    assert!(rows.iter().all(|kind| deleted[*kind] > 0), "{deleted:?}");
    let seen = outline(&watching.rest().await);
    assert!(seen.iter().all(|event| event.contains("CANCELED")), "the stream ends: {seen:?}");
    assert_eq!(server.store.census().await.unwrap(), Census::default());
    assert_eq!(ada.refused("GetTask", json!({"id": task})).await.reason, "TASK_NOT_FOUND");
    let again = purge_task(&server.base, id, &own(&server, key(KEY))).await.unwrap();
    assert_eq!(again, BTreeMap::new(), "there is nothing left");
    // The same first message begins the task anew.
    assert_eq!(held(ada, "m-1").await, task);
    let log = server.store.log(&TaskId::from(id), None, 9).await.unwrap();
    assert_eq!(log[0].seq, 0);
    server.engine.release();
}

#[tokio::test]
async fn a_task_that_does_not_let_itself_be_canceled_is_purged_all_the_same() {
    let server = start_with(|config| config.push_key = Some(key(KEY))).await;
    let task = held(server.caller(Binding::JsonRpc, "ada"), "m-1").await;
    server.engine.refuse("not now");
    let id = task.as_str().unwrap();
    let deleted = purge_task(&server.base, id, &own(&server, key(KEY))).await.unwrap();
    assert_eq!(deleted["tasks"], 1);
    let left = server.store.task(&TaskId::from(id), TaskFields::BARE).await.unwrap();
    assert_eq!(left, None);
}

#[tokio::test]
async fn a_purge_is_for_those_who_hold_the_key() {
    let server = start_with(secured).await;
    let url = format!("{}/_purge", server.base);
    for request in [server.http.post(&url), server.http.post(&url).bearer_auth("ada-1")] {
        let request = request.body("{\"task\": \"t\"}");
        assert_eq!(request.send().await.unwrap().status().as_u16(), 404);
    }
    let wrong = key("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=");
    let error = purge_task(&server.base, "t", &own(&server, wrong)).await.unwrap_err();
    assert!(matches!(error, ClientError::Status { status: 404, .. }), "{error:?}");
    for id in ["t", "no/such task", ".."] {
        let deleted = purge_task(&server.base, id, &own(&server, key(KEY))).await.unwrap();
        assert_eq!(deleted, BTreeMap::new(), "{id}");
    }
}

#[tokio::test]
async fn whoever_follows_a_task_that_is_deleted_is_let_go() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = held(ada, &format!("{binding:?}")).await;
        let mut watching = ada.open("SubscribeToTask", json!({"id": task}), None).await;
        assert!(watching.next().await.is_some());
        let mut resumed = ada.open("SubscribeToTask", json!({"id": task}), Some(0)).await;
        assert!(resumed.next().await.is_some());
        delete(&server, &task).await;
        assert_eq!(outline(&watching.rest().await), Vec::<String>::new());
        assert_eq!(outline(&resumed.rest().await), Vec::<String>::new());
        assert_eq!(ada.refused("SubscribeToTask", json!({"id": task})).await.reason, "TASK_NOT_FOUND");
        server.engine.release();
    }
}

/// A receiver counts as behind until it has heard everything, and not at all when it is done or its task is gone.
#[tokio::test]
async fn receivers_that_are_behind_are_counted() {
    let server = start_with(|config| config.push_key = Some(key(KEY))).await;
    let ada = server.caller(Binding::JsonRpc, "ada");
    assert_eq!(receivers_behind(&*server.store).await.unwrap(), 0);
    // Nobody may be called on this machine, so that nothing is delivered, and what waits is what was stored.
    let task = held(ada, "m-1").await;
    let record = |delivered: Option<u64>, state: &str| {
        let value = json!({"type": "push_config.v1", "config_id": "c", "owner": "ada", "url": "https://a.example/",
            "scheme": null, "sealed": "", "origin": null, "delivered": delivered, "state": state, "failure": null});
        let task_id = TaskId::from(task.as_str().unwrap());
        Write::PutRecord(Record { kind: RecordKind::PushConfig, id: "t:c".to_owned(), task_id, value })
    };
    for (delivered, state, behind) in [
        (None, "active", 1),
        (Some(0), "active", 1),
        (Some(99), "active", 0),
        (Some(0), "done", 0),
        (None, "given_up", 0),
    ] {
        commit(&server, record(delivered, state)).await;
        assert_eq!(receivers_behind(&*server.store).await.unwrap(), behind, "{delivered:?} {state}");
    }
    commit(&server, record(None, "active")).await;
    delete(&server, &task).await;
    assert_eq!(receivers_behind(&*server.store).await.unwrap(), 0);
    server.engine.release();
}
