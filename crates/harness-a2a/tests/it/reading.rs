//! GetTask, ListTasks and CancelTask.

use serde_json::{Value, json};

use crate::{
    api::{BOTH, Caller, message, reply},
    server::start,
};

async fn names(caller: Caller<'_>, params: Value) -> Vec<String> {
    let page = caller.ok("ListTasks", params).await;
    let key = "io.github.madarauchiha-314.tiny-harness/task";
    let tasks = page["tasks"].as_array().unwrap();
    tasks.iter().map(|task| task["metadata"][key]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_empty_listing_has_all_four_fields() {
    let server = start().await;
    for binding in BOTH {
        for participant in ["ada", ""] {
            let page = server.caller(binding, participant).ok("ListTasks", json!({})).await;
            assert_eq!(page, json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}));
        }
    }
}

#[tokio::test]
async fn listings_are_filtered_ordered_and_bare() {
    for binding in BOTH {
        let server = start().await;
        let ada = server.caller(binding, "ada");
        let mut first = message("1", "hello one");
        first["contextId"] = json!("c");
        let first = ada.send(first).await;
        let second = ada.send(message("2", "finish two")).await;
        server.caller(binding, "bob").send(message("3", "hello three")).await;
        assert_eq!(names(ada, json!({})).await, ["finish two", "hello one"]);
        ada.send(reply("4", "hello", &first)).await;
        assert_eq!(names(ada, json!({})).await, ["hello one", "finish two"], "newest status first");
        assert_eq!(names(ada, json!({"contextId": "c"})).await, ["hello one"]);
        assert_eq!(names(ada, json!({"status": "TASK_STATE_COMPLETED"})).await, ["finish two"]);
        let since = second["status"]["timestamp"].clone();
        assert_eq!(names(ada, json!({"statusTimestampAfter": since})).await.len(), 2, "inclusive");
        let page = ada.ok("ListTasks", json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await;
        assert_eq!(page["totalSize"], 0);
        let bare = &ada.ok("ListTasks", json!({})).await["tasks"][0];
        assert!(bare.get("artifacts").is_none() && bare.get("history").is_none());
        let full = ada.ok("ListTasks", json!({"includeArtifacts": true, "historyLength": 1})).await;
        assert_eq!(full["tasks"][0]["history"].as_array().unwrap().len(), 1);
        assert_eq!(full["tasks"][1]["artifacts"][0]["artifactId"], "answer-1");
    }
}

#[tokio::test]
async fn pages_are_stable_when_tasks_are_added() {
    for binding in BOTH {
        let server = start().await;
        let ada = server.caller(binding, "ada");
        for n in 0..5 {
            ada.send(message(&n.to_string(), &format!("hello {n}"))).await;
        }
        let page = ada.ok("ListTasks", json!({"pageSize": 2})).await;
        assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(5), &json!(2)));
        ada.send(message("new", "hello new")).await;
        let mut seen = Vec::new();
        let mut token = page["nextPageToken"].clone();
        while token != "" {
            let page = ada.ok("ListTasks", json!({"pageSize": 2, "pageToken": token})).await;
            for task in page["tasks"].as_array().unwrap() {
                seen.push(task["history"].clone());
            }
            token = page["nextPageToken"].clone();
        }
        assert_eq!(seen.len(), 3);
    }
}

#[tokio::test]
async fn parameters_of_a_listing_are_checked() {
    let server = start().await;
    for binding in BOTH {
        for params in [
            json!({"pageSize": 0}),
            json!({"pageSize": -1}),
            json!({"pageSize": 101}),
            json!({"pageToken": "999"}),
            json!({"status": "working"}),
            json!({"historyLength": -1}),
            json!({"statusTimestampAfter": "yesterday"}),
            json!({"contextId": "c".repeat(400)}),
        ] {
            let refusal = server.caller(binding, "ada").refused("ListTasks", params.clone()).await;
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{params}");
        }
    }
}

#[tokio::test]
async fn a_cancel_ends_the_task_once() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let params = json!({
            "message": message(&format!("{binding:?}"), "hold"), "configuration": {"returnImmediately": true}
        });
        let task = ada.ok("SendMessage", params).await["task"].clone();
        let canceled = ada.ok("CancelTask", json!({"id": task["id"]})).await;
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
        assert_eq!(canceled["status"]["message"]["parts"][0]["text"], "cancelled by client");
        let again = ada.refused("CancelTask", json!({"id": task["id"]})).await;
        assert_eq!(again.reason, "TASK_NOT_CANCELABLE");
        assert_eq!(ada.ok("GetTask", json!({"id": task["id"]})).await["status"], canceled["status"]);
    }
}

#[tokio::test]
async fn identifiers_are_bounded() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let long = "x".repeat(5_000);
        assert_eq!(ada.refused("GetTask", json!({"id": long})).await.reason, "TASK_NOT_FOUND");
    }
}
