//! A task that has ended says no, and nothing about it changes.

use serde_json::json;

use crate::{
    api::{BOTH, Binding, message, reply, state},
    rig::Rig,
    stored,
};

const SCRIPT: &str = r#"
[[turns]]
text = "That was all."
"#;

#[tokio::test]
async fn a_finished_task_refuses_messages_and_subscriptions() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let task = server.ada().send(message("m-1", "hello")).await;
    assert_eq!(state(&task), "COMPLETED");
    let id = task["id"].as_str().unwrap();
    let before = server.ada().task(id).await;
    let rows = everything_stored(&rig);
    let calls = server.model_calls();
    assert_eq!(calls, 1);

    for binding in BOTH {
        let code = |json_rpc: i64, http: i64| if binding == Binding::JsonRpc { json_rpc } else { http };
        let ada = server.api(binding, "ada");
        let more = json!({"message": reply("m-2", "one more thing", &task)});
        for (operation, params) in [("SendMessage", more), ("SubscribeToTask", json!({"id": id}))] {
            let refusal = ada.refused(operation, params).await;
            assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION", "{binding:?} {operation}");
            assert_eq!(refusal.code, code(-32004, 400), "{binding:?} {operation}");
        }
        let nobody = json!({"id": "4d2f6c1e-0000-8000-8000-000000000000"});
        let stray = json!({"message": reply("m-3", "hello?", &nobody)});
        for (operation, params) in
            [("SendMessage", stray), ("SubscribeToTask", nobody.clone()), ("GetTask", nobody.clone())]
        {
            let refusal = ada.refused(operation, params).await;
            assert_eq!(refusal.reason, "TASK_NOT_FOUND", "{binding:?} {operation}");
            assert_eq!(refusal.code, code(-32001, 404), "{binding:?} {operation}");
        }
    }

    assert_eq!(server.ada().task(id).await, before);
    assert_eq!(everything_stored(&rig), rows, "what is stored is what it was, byte for byte");
    assert_eq!(server.model_calls(), calls, "the model was not asked");
    server.stop().await;
    let again = rig.serve().await;
    assert_eq!(again.ada().task(id).await, before, "nor does a restart change it");
}

/// Every row that a task could have changed.
fn everything_stored(rig: &Rig) -> Vec<String> {
    let queries = [
        "SELECT record FROM tasks",
        "SELECT event FROM log ORDER BY task, seq",
        "SELECT event FROM journal ORDER BY workflow, seq",
        "SELECT task FROM activities",
        "SELECT dedupe_key FROM deliveries ORDER BY dedupe_key",
        "SELECT hex(address) FROM blocks ORDER BY address",
        "SELECT record_id FROM records ORDER BY record_id",
    ];
    queries.iter().flat_map(|query| stored::texts(&rig.store(), query)).collect()
}
