//! What receivers of push notifications get: everything, in order, again after failures and restarts.

use std::{sync::Arc, time::Duration};

use harness_a2a::{A2aConfig, AddressGuard, PushKey, PushRetry};
use harness_model::{Secret, TaskId};
use harness_ports::{RecordKind, Store};
use harness_testkit::MemoryStore;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, Caller, message, reply},
    receiver::{Received, Receiver},
    server::{PATIENCE, Server, start_over, start_with},
};

const CREATE: &str = "CreateTaskPushNotificationConfig";

/// A sender that may call this machine and does not wait long.
fn pushing(config: &mut A2aConfig) {
    let key = Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    config.push_key = Some(PushKey::from_base64(&key).unwrap());
    config.push_guard = AddressGuard::allowing(&["127.0.0.0/8"]).unwrap();
    config.push_retry =
        PushRetry { attempts_max: 5, first: Duration::from_millis(2), longest: Duration::from_millis(10) };
}

/// A message that comes with a receiver.
fn with_push(message: Value, config: &Value) -> Value {
    json!({"message": message, "configuration": {"taskPushNotificationConfig": config}})
}

fn outlines(received: &[Received]) -> Vec<String> {
    received.iter().map(Received::outline).collect()
}

/// Waits until the one record of a task is in this state; the record.
async fn record_in_state(server: &Server, task: &Value, state: &str) -> Value {
    let task = TaskId::from(task.as_str().unwrap());
    let waiting = async {
        loop {
            let records = server.store.records(RecordKind::PushConfig, &task, 9).await.unwrap();
            if let [record] = records.as_slice()
                && record.value["state"] == state
            {
                return record.value.clone();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the record gets there")
}

async fn held_task(caller: Caller<'_>, id: &str) -> Value {
    let params = json!({"message": message(id, "hold"), "configuration": {"returnImmediately": true}});
    caller.ok("SendMessage", params).await["task"]["id"].clone()
}

const HELLO: [&str; 4] = [
    "1 statusUpdate WORKING",
    "2 artifactUpdate Hello, ",
    "3 artifactUpdate world.",
    "4 statusUpdate INPUT_REQUIRED",
];

#[tokio::test]
async fn a_receiver_that_comes_with_a_message_hears_all_of_it() {
    let server = start_with(pushing).await;
    for binding in BOTH {
        let receiver = Receiver::answering(&[200]).await;
        let ada = server.caller(binding, "ada");
        let config = json!({"url": receiver.url("/in"), "token": "tok",
            "authentication": {"scheme": "Basic", "credentials": "YTpi"}});
        let params = with_push(message(&format!("{binding:?}-1"), "hello"), &config);
        let task = ada.ok("SendMessage", params.clone()).await["task"].clone();
        let received = receiver.when(|all| all.len() == 4).await;
        assert_eq!(outlines(&received), HELLO);
        for one in &received {
            assert_eq!((one.path.as_str(), one.body.as_object().unwrap().len()), ("/in", 1));
            assert_eq!(one.header("content-type"), "application/a2a+json");
            assert_eq!(one.header("a2a-version"), "1.0");
            assert_eq!(
                (one.header("x-a2a-notification-token"), one.header("a2a-notification-token")),
                ("tok", "tok")
            );
            assert_eq!(one.header("authorization"), "Basic YTpi");
        }
        assert_eq!(received[0].body["statusUpdate"]["taskId"], task["id"]);
        // A repeat is the same message with the same receiver: nobody hears anything twice.
        ada.ok("SendMessage", params).await;
        let finish = json!({"message": reply(&format!("{binding:?}-2"), "finish", &task)});
        ada.ok("SendMessage", finish).await;
        let received = receiver.when(|all| all.len() >= 7).await;
        let expected =
            ["5 statusUpdate WORKING", "6 artifactUpdate the whole answer", "7 statusUpdate COMPLETED"];
        assert_eq!(outlines(&received)[4..], expected);
        record_in_state(&server, &task["id"], "done").await;
        assert_eq!(receiver.now().len(), 7);
    }
}

#[tokio::test]
async fn a_receiver_of_an_existing_task_hears_what_follows() {
    let server = start_with(pushing).await;
    for binding in BOTH {
        let receiver = Receiver::answering(&[204]).await;
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}-1"), "hello")).await;
        let config = json!({"taskId": task["id"], "url": receiver.url("/"),
            "authentication": {"scheme": "Negotiate"}});
        ada.ok(CREATE, config).await;
        ada.send(reply(&format!("{binding:?}-2"), "ask", &task)).await;
        let received = receiver.when(|all| all.len() >= 2).await;
        assert_eq!(outlines(&received), ["5 statusUpdate WORKING", "6 statusUpdate INPUT_REQUIRED"]);
        assert_eq!(received[0].header("authorization"), "Negotiate");
        assert!(!received[0].headers.contains_key("a2a-notification-token"));
        // With a message to the task another receiver comes for that turn on.
        let second = Receiver::answering(&[200]).await;
        let params =
            with_push(reply(&format!("{binding:?}-3"), "ask", &task), &json!({"url": second.url("/")}));
        ada.ok("SendMessage", params).await;
        let expected = ["7 statusUpdate WORKING", "8 statusUpdate INPUT_REQUIRED"];
        assert_eq!(outlines(&second.when(|all| all.len() >= 2).await), expected);
        assert_eq!(outlines(&receiver.when(|all| all.len() >= 4).await)[2..], expected);
    }
}

#[tokio::test]
async fn failures_are_repeated_and_nothing_overtakes() {
    let server = start_with(pushing).await;
    let receiver = Receiver::answering(&[500, 302, 200, 200, 404, 429, 503, 200]).await;
    let other = Receiver::answering(&[200]).await;
    let ada = server.caller(Binding::JsonRpc, "ada");
    let first = with_push(message("m", "hello"), &json!({"url": receiver.url("/in")}));
    ada.ok("SendMessage", first).await;
    let received = receiver.when(|all| all.len() >= 9).await;
    let delivered: Vec<Received> = received.iter().filter(|one| one.status < 300).cloned().collect();
    assert_eq!(outlines(&delivered), HELLO);
    assert_eq!(outlines(&received)[..3], [HELLO[0]; 3], "an entry is repeated until it is taken");
    assert!(received.iter().all(|one| one.path == "/in"), "a redirect is not followed");
    ada.ok("SendMessage", with_push(message("n", "hello"), &json!({"url": other.url("/")}))).await;
    assert_eq!(outlines(&other.when(|all| all.len() >= 4).await), HELLO);
}

#[tokio::test]
async fn a_receiver_that_never_answers_well_is_given_up_loudly() {
    let server = start_with(pushing).await;
    for (status, tries) in [(500, 5), (410, 1)] {
        let receiver = Receiver::answering(&[status]).await;
        let ada = server.caller(Binding::JsonRpc, "ada");
        let config = json!({"id": "c", "url": receiver.url("/")});
        let params = with_push(message(&format!("m{status}"), "hello"), &config);
        let task = ada.ok("SendMessage", params).await["task"]["id"].clone();
        let record = record_in_state(&server, &task, "given_up").await;
        let failure = record["failure"].as_str().unwrap();
        assert!(failure.contains(&format!("HTTP status {status}")), "{failure}");
        assert_eq!((record["delivered"].clone(), receiver.now().len()), (Value::Null, tries));
        // Registering again is a new beginning.
        receiver.answer(200);
        ada.ok(CREATE, json!({"taskId": task, "id": "c", "url": receiver.url("/again")})).await;
        ada.send(reply("r", "finish", &json!({"id": task}))).await;
        let received = receiver.when(|all| all.len() >= tries + 3).await;
        assert_eq!(received[tries].outline(), "5 statusUpdate WORKING");
        record_in_state(&server, &task, "done").await;
    }
}

#[tokio::test]
async fn a_new_process_goes_on_where_the_old_one_stopped() {
    let store = MemoryStore::new();
    let receiver = Receiver::answering(&[200, 200, 503]).await;
    let patient = |config: &mut A2aConfig| {
        pushing(config);
        config.push_retry.attempts_max = u32::MAX;
    };
    let first = start_over(Arc::clone(&store) as Arc<dyn Store>, patient).await;
    let ada = first.caller(Binding::JsonRpc, "ada");
    let params = with_push(message("m", "hello"), &json!({"url": receiver.url("/")}));
    let task = ada.ok("SendMessage", params).await["task"].clone();
    // The third event is refused; the process ends while it is being repeated.
    receiver.when(|all| all.len() >= 4).await;
    assert!(first.group.shutdown(PATIENCE).await, "everything stops in time");
    let before = receiver.now().len();
    receiver.answer(200);
    let second = start_over(store.reopen(), patient).await;
    let received = receiver.when(|all| all.len() >= before + 2).await;
    let fresh = outlines(&received[before..]);
    assert_eq!(fresh, HELLO[2..], "from the first one that was not taken on");
    second.caller(Binding::Rest, "ada").send(reply("r", "finish", &task)).await;
    let received = receiver.when(|all| all.len() >= before + 5).await;
    assert_eq!(received.last().unwrap().outline(), "7 statusUpdate COMPLETED");
    record_in_state(&second, &task["id"], "done").await;
}

#[tokio::test]
async fn a_removed_receiver_hears_nothing_more() {
    let server = start_with(pushing).await;
    for binding in BOTH {
        let receiver = Receiver::answering(&[200]).await;
        let ada = server.caller(binding, "ada");
        let task = held_task(ada, &format!("{binding:?}")).await;
        for id in ["gone", "moved", "stays"] {
            let config = json!({"taskId": task, "id": id, "url": receiver.url(&format!("/{id}"))});
            ada.ok(CREATE, config).await;
        }
        ada.ok("DeleteTaskPushNotificationConfig", json!({"taskId": task, "id": "gone"})).await;
        ada.ok(CREATE, json!({"taskId": task, "id": "moved", "url": receiver.url("/new-place")})).await;
        server.engine.release();
        ada.send(reply(&format!("{binding:?}-2"), "finish", &json!({"id": task}))).await;
        let last = |all: &[Received], path: &str| {
            all.iter().any(|one| one.path == path && one.outline().ends_with("COMPLETED"))
        };
        let received = receiver.when(|all| last(all, "/stays") && last(all, "/new-place")).await;
        let at = |path: &str| received.iter().filter(|one| one.path == path).count();
        assert_eq!((at("/gone"), at("/moved")), (0, 0));
        assert_eq!((at("/stays"), at("/new-place")), (4, 4));
    }
}

#[tokio::test]
async fn an_address_that_is_no_longer_allowed_is_not_called() {
    let store = MemoryStore::new();
    let receiver = Receiver::answering(&[503]).await;
    let patient = |config: &mut A2aConfig| {
        pushing(config);
        config.push_retry.attempts_max = u32::MAX;
    };
    let first = start_over(Arc::clone(&store) as Arc<dyn Store>, patient).await;
    let params = with_push(message("m", "hello"), &json!({"url": receiver.url("/")}));
    let task = first.caller(Binding::JsonRpc, "ada").ok("SendMessage", params).await["task"]["id"].clone();
    receiver.when(|all| !all.is_empty()).await;
    assert!(first.group.shutdown(PATIENCE).await);
    let before = receiver.now().len();
    let second = start_over(store.reopen(), |config| {
        pushing(config);
        config.push_guard = AddressGuard::default();
    })
    .await;
    let record = record_in_state(&second, &task, "given_up").await;
    assert_eq!(record["failure"], "the URL is forbidden: it does not lead to a public address");
    assert_eq!(receiver.now().len(), before);
}
