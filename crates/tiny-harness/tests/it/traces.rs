//! Where in a trace a caller is reaches what its message leads to, in whichever process that happens.

use serde_json::json;

use crate::{
    api::{BOTH, message},
    rig::{Rig, begun},
};

const SCRIPT: &str = "[[turns]]\ntext = \"Hello.\"\n";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn trace_ids_in_the_log(rig: &Rig) {
    let server = rig.serve().await;
    for (number, binding) in BOTH.into_iter().enumerate() {
        let api = server.api(binding, "ada");
        let params = json!({"message": message(&format!("m-{number}"), "hello")});
        let traced = api
            .request("SendMessage", &params)
            .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
        assert!(traced.send().await.unwrap().status().is_success());
        let params = json!({"message": message(&format!("u-{number}"), "hello")});
        let garbled = api.request("SendMessage", &params).header("traceparent", "00-what-is-this");
        assert!(garbled.send().await.unwrap().status().is_success(), "it is no reason to refuse");
    }
    let ended = server.stop().await;
    let runs = begun(&ended.stderr);
    let traced = runs.iter().filter(|run| run["trace_id"] == TRACE).count();
    let untraced = runs.iter().filter(|run| run.get("trace_id").is_none()).count();
    assert!(traced >= 2 && traced == untraced, "{runs:#?}");
    assert_eq!(runs.len(), traced + untraced);
}

#[tokio::test]
async fn a_trace_reaches_activities() {
    trace_ids_in_the_log(&Rig::new(SCRIPT)).await;
}

#[tokio::test]
async fn a_trace_reaches_activities_on_temporal() {
    let Some(tables) = crate::temporal_rig::embedded_tables() else { return };
    trace_ids_in_the_log(&Rig::new(SCRIPT).tables(&tables)).await;
}
