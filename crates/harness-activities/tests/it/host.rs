//! The host: names, inputs, who watches, and stopping.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use harness_activities::{ActivityObserver, ActivityRun};
use harness_agent::{INTAKE, INVOKE_MODEL, INVOKE_TOOL};
use harness_model::codes;
use harness_ports::{ActivityFailure, FailureKind};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Speak, model_input};

#[derive(Debug, Default)]
struct Watcher(Mutex<Vec<String>>);

impl ActivityObserver for Watcher {
    fn started(&self, run: &ActivityRun) {
        let line = format!("> {} {} {} {:?}", run.workflow_id, run.name, run.run_id, run.tool);
        self.0.lock().unwrap().push(line);
    }

    fn ended(&self, run: &ActivityRun, duration: Duration, outcome: Result<&Value, &ActivityFailure>) {
        let outcome = outcome.map(|_| ()).map_err(|failure| failure.kind);
        self.0.lock().unwrap().push(format!("< {} {duration:?} {outcome:?}", run.name));
    }
}

#[tokio::test]
async fn unknown_names_and_inputs_are_fatal() {
    let fixture = Fixture::new();
    for (name, input) in [
        ("intake.v9", json!({})),
        (INTAKE, json!({"task_id": 7})),
        (INVOKE_MODEL, json!(null)),
        (INVOKE_TOOL, json!([])),
    ] {
        let failed = fixture.run_raw(name, input, "run-1").await.unwrap_err();
        assert_eq!((failed.code, failed.kind), (codes::STATE_INVALID, FailureKind::Fatal), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_sees_each_beginning_and_each_end() {
    let watcher = Arc::new(Watcher::default());
    let mut fixture = Fixture::new();
    fixture.observer = Some(Arc::clone(&watcher) as Arc<dyn ActivityObserver>);
    let input = fixture.tool_input("list_skills", json!({})).await;
    fixture.call_tool(&input).await.unwrap();
    fixture.script([Speak::Hang]);
    let input = model_input();
    let abandoned = fixture.outcome(&input, "run-2");
    assert!(tokio::time::timeout(Duration::from_millis(10), abandoned).await.is_err());
    assert_eq!(
        *watcher.0.lock().unwrap(),
        [
            "> task-1 invoke_tool.v1 run-1 Some(\"list_skills\")",
            "< invoke_tool.v1 0ns Ok(())",
            "> task-1 invoke_model.v1 run-2 None",
            "< invoke_model.v1 0ns Err(Canceled)",
        ]
    );
}

#[tokio::test]
async fn nothing_begins_after_a_cancel() {
    let fixture = Fixture::new();
    fixture.cancel.cancel();
    let input = fixture.tool_input("shop.get", json!({})).await;
    assert_eq!(fixture.call_tool(&input).await.unwrap_err().kind, FailureKind::Canceled);
    assert_eq!(fixture.outcome(&model_input(), "run-1").await.unwrap_err().kind, FailureKind::Canceled);
    assert!(fixture.model.requests.lock().unwrap().is_empty());
}
