//! Starts, signals, duplicates, refusals, order.

use futures::future::join_all;
use harness_model::WorkflowId;

use super::{
    lab::EngineLab,
    script::{self, Op, say},
    stage::Stage,
};
use crate::{Block, Delivered, Delivery, EngineError, Signal, StartWorkflow};

fn delivery(workflow_id: &str, start: Option<StartWorkflow>, signal: Option<Signal>) -> Delivery {
    Delivery { workflow_id: WorkflowId::new(workflow_id), start, signal, blocks: Vec::new() }
}

/// A start goes through the definition, is durable when answered, and happens once per id.
pub async fn a_start_is_prepared_recorded_and_happens_once(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let engine = stage.engine();
    let first = engine.deliver(delivery("w", Some(script::start("w")), None)).await;
    assert_eq!(first.unwrap(), Delivered::Accepted { cursor: None });
    stage.check("w", &["started"]).await;
    let second = engine.deliver(delivery("w", Some(script::start("w")), None)).await;
    assert_eq!(second.unwrap(), Delivered::Duplicate { cursor: None });
    let with_signal = stage.order("w", "a", None, &[]).await;
    assert_eq!(with_signal.unwrap(), Delivered::Accepted { cursor: Some(0) });
    stage.check("w", &["started", "signal a"]).await;

    let mut broken = script::start("bad");
    broken.input["broken"] = serde_json::json!(true);
    let refused = engine.deliver(delivery("bad", Some(broken), None)).await;
    assert!(matches!(refused, Err(EngineError::SetAside { .. })), "{refused:?}");
    stage.accept("bad", "a better start", &[]).await;
    stage.check("bad", &["started", "signal a better start"]).await;

    let unknown = StartWorkflow { workflow_type: "nobody.v1".to_owned(), input: serde_json::Value::Null };
    let refused = engine.deliver(delivery("unknown", Some(unknown), None)).await;
    assert!(matches!(refused, Err(EngineError::UnknownType(name)) if name == "nobody.v1"));
    let still_unknown = engine.deliver(delivery("unknown", None, None)).await;
    assert_eq!(still_unknown.unwrap(), Delivered::NotFound);
}

/// Signals with one key reach the workflow once, also when it has ended or the process was restarted since.
pub async fn a_repeated_delivery_returns_the_first_receipt(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    stage.accept("w", "a", &[]).await;
    let first = stage.order("w", "b", Some("k"), &[]).await.unwrap();
    assert_eq!(first, Delivered::Accepted { cursor: Some(1) });
    stage.accept("w", "c", &[]).await;
    let again = Delivered::Duplicate { cursor: Some(1) };
    assert_eq!(stage.order("w", "b", Some("k"), &[]).await.unwrap(), again);
    let other_workflow = stage.order("v", "b", Some("k"), &[]).await.unwrap();
    assert_eq!(other_workflow, Delivered::Accepted { cursor: None });

    stage.accept("w", "end", &[Op::Close]).await;
    assert_eq!(stage.order("w", "b", Some("k"), &[]).await.unwrap(), again);
    let stage = stage.kill_and_reopen().await;
    assert_eq!(stage.order("w", "b", Some("k"), &[]).await.unwrap(), again);
    stage.check("w", &["started", "signal a", "signal b", "signal c", "signal end"]).await;
}

/// What a workflow does not take is answered and leaves no trace.
pub async fn a_workflow_answers_not_found_refused_and_closed(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let engine = stage.engine();
    let lost = delivery("w", None, Some(script::signal("a", Some("k"), &[])));
    assert_eq!(engine.deliver(lost).await.unwrap(), Delivered::NotFound);

    let unwanted = Signal { name: "other.v1".to_owned(), ..script::signal("a", Some("k"), &[]) };
    let block = Block::new("a refused message");
    let mut refused = delivery("w", Some(script::start("w")), Some(unwanted));
    refused.blocks.push(block.clone());
    let receipt = engine.deliver(refused.clone()).await.unwrap();
    assert_eq!(receipt, Delivered::Refused { reason: "not now".to_owned() });
    assert!(stage.transcript("w").await.is_empty(), "a refused start leaves no workflow");

    stage.accept("w", "a", &[]).await;
    let receipt = engine.deliver(refused).await.unwrap();
    assert_eq!(receipt, Delivered::Refused { reason: "not now".to_owned() });
    assert_eq!(stage.life.store().block(&block.reference.id).await.unwrap(), None);
    let kept = stage.order("w", "b", Some("k"), &[Op::Close]).await.unwrap();
    assert_eq!(kept, Delivered::Accepted { cursor: Some(1) }, "a refused key is free");
    assert_eq!(stage.order("w", "c", None, &[]).await.unwrap(), Delivered::Closed);
    let start_only = delivery("w", Some(script::start("w")), None);
    assert_eq!(engine.deliver(start_only).await.unwrap(), Delivered::Closed);
    stage.check("w", &["started", "signal a", "signal b"]).await;
}

/// Whoever is first starts the workflow; everybody gets the same receipt.
pub async fn parallel_first_deliveries_make_one_workflow(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let receipts = join_all((0..10).map(|_| stage.order("w", "first", Some("k"), &[]))).await;
    let receipts: Vec<_> = receipts.into_iter().map(Result::unwrap).collect();
    let accepted = receipts.iter().filter(|receipt| **receipt == Delivered::Accepted { cursor: None });
    assert_eq!(accepted.count(), 1, "{receipts:?}");
    let repeated = receipts.iter().filter(|receipt| **receipt == Delivered::Duplicate { cursor: None });
    assert_eq!(repeated.count(), 9, "{receipts:?}");
    stage.check("w", &["started", "signal first"]).await;
}

/// Each receipt names the log entry right before the consequences of its signal, however many arrive at once, and
/// deliveries of one caller keep their order.
pub async fn concurrent_deliveries_are_ordered_and_their_cursors_are_exact(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    stage.accept("w", "first", &[]).await;
    let callers = (0..8).map(|caller| {
        let stage = &stage;
        async move {
            let mut receipts = Vec::new();
            for turn in 0..8 {
                let label = format!("{caller}.{turn}");
                let receipt = stage.order("w", &label, Some(&label), &[say("well")]).await;
                receipts.push((format!("signal {label}"), receipt.unwrap()));
            }
            receipts
        }
    });
    let receipts = join_all(callers).await;
    let transcript = stage.transcript("w").await;
    assert_eq!(transcript.len(), 2 + 8 * 8 * 2);
    for of_one_caller in receipts {
        let mut before = 0;
        for (line, receipt) in of_one_caller {
            let position = transcript.iter().position(|seen| *seen == line).unwrap() as u64;
            assert_eq!(receipt, Delivered::Accepted { cursor: Some(position - 1) }, "{line}");
            assert!(position > before, "{line} is out of order");
            before = position;
        }
    }
}

/// An accepted delivery is durable, with its blocks, before its receipt is given.
pub async fn the_receipt_of_a_delivery_survives_the_process(lab: &dyn EngineLab) {
    let mut stage = Stage::open(lab).await;
    for life in 0..5 {
        let label = format!("{life}");
        let block = Block::new(label.clone());
        let mut accepted =
            delivery("w", Some(script::start("w")), Some(script::signal(&label, Some(&label), &[])));
        accepted.blocks.push(block.clone());
        let receipt = stage.engine().deliver(accepted).await.unwrap();
        assert!(matches!(receipt, Delivered::Accepted { .. }), "{receipt:?}");
        stage = stage.kill_and_reopen().await;
        let kept = stage.life.store().block(&block.reference.id).await.unwrap();
        assert_eq!(kept, Some(block.bytes));
    }
    let signals = (0..5).map(|life| format!("signal {life}"));
    let expected: Vec<_> = std::iter::once("started".to_owned()).chain(signals).collect();
    assert_eq!(stage.transcript("w").await, expected);
}
