//! Activities that outlive their task.

use std::sync::{Arc, OnceLock};

use harness_model::{BlockId, TaskId};
use harness_ports::{Census, Clock as _, DeleteWhen, Store, ToolOutput, ToolPart, Write, WriteBatch};
use serde_json::json;

use crate::fixture::{Fixture, Speak, StoppedClock, Tools, answer, model_input, say, task_id, tool};

async fn delete(store: &dyn Store) {
    let delete = |task_id: TaskId| Write::DeleteTask { task_id, when: DeleteWhen::Always };
    let writes = ["task-2".into(), task_id()].map(delete);
    store.commit(WriteBatch::new(StoppedClock.now(), writes.into())).await.unwrap();
}

async fn assert_nothing_is_back(fixture: &Fixture) {
    assert_eq!(fixture.store.census().await.unwrap(), Census::default());
    assert!(fixture.store.log(&task_id(), None, 9).await.unwrap().is_empty());
}

/// The task is deleted while the model speaks: neither its further words nor its answer are kept.
#[tokio::test(start_paused = true)]
async fn a_model_that_speaks_on_is_not_heard() {
    let fixture = Fixture::new();
    fixture.begin_task("It is broken").await;
    let late = "words that come late";
    fixture.script([
        say("early "),
        Speak::Wait(100),
        Speak::Wait(100),
        say(late),
        Speak::Wait(100),
        Speak::Done(answer(&format!("early {late}"))),
    ]);
    let deleting = async {
        while fixture.chunks().await.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        delete(&*fixture.store).await;
    };
    let input = model_input();
    let (outcome, ()) = tokio::join!(fixture.outcome(&input, "run-1"), deleting);
    outcome.unwrap_err();
    assert_nothing_is_back(&fixture).await;
    for text in [late, "early ", &format!("early {late}")] {
        assert_eq!(fixture.store.block(&BlockId::of(text.as_bytes())).await.unwrap(), None);
    }
}

/// The task is deleted while a tool works: its result is not kept, neither inline nor behind a handle.
#[tokio::test]
async fn the_result_of_a_tool_is_not_kept() {
    let store: Arc<OnceLock<Arc<dyn Store>>> = Arc::default();
    let seen = Arc::clone(&store);
    let large = "x".repeat(100_000);
    let text = large.clone();
    let fixture = Fixture::with_tools(Tools {
        catalogue: vec![tool("shop.dump", json!({"type": "object"}))],
        answer: Some(Box::new(move |_| {
            let (store, text) = (Arc::clone(seen.get().unwrap()), text.clone());
            Box::pin(async move {
                delete(&*store).await;
                let parts = vec![ToolPart::Text(text)];
                Ok(ToolOutput { parts, is_error: false, truncated: false })
            })
        })),
        ..Tools::default()
    });
    store.set(Arc::clone(&fixture.store)).ok();
    let input = fixture.tool_input("shop.dump", json!({})).await;
    fixture.call_tool(&input).await.unwrap_err();
    assert_nothing_is_back(&fixture).await;
    assert_eq!(fixture.store.block(&BlockId::of(large.as_bytes())).await.unwrap(), None);
}
