//! Calls of tools that live elsewhere.

use std::time::Duration;

use harness_model::{ErrorCode, ItemPart, codes};
use harness_ports::{FailureKind, ToolError, ToolErrorKind, ToolOutput, ToolPart};
use serde_json::json;

use crate::fixture::{Fixture, SECRET, Tools};

/// Tools that always answer so.
fn answering(answer: Result<ToolOutput, ToolError>) -> Fixture {
    let tools = Tools {
        answer: Some(Box::new(move |_| {
            let answer = answer.clone();
            Box::pin(async move { answer })
        })),
        ..Tools::default()
    };
    Fixture::with_tools(tools)
}

pub(crate) fn returning(parts: Vec<ToolPart>) -> Fixture {
    answering(Ok(ToolOutput { is_error: false, parts, truncated: false }))
}

#[tokio::test]
async fn a_call_carries_its_key_and_gives_its_result() {
    let fixture =
        returning(vec![ToolPart::Text("shipped".to_owned()), ToolPart::Data(json!({"state": "shipped"}))]);
    let input = fixture.tool_input("shop.get", json!({"order_id": "1"})).await;
    let facts = fixture.call_tool(&input).await.unwrap();
    let parts = fixture.result_parts(&facts).await;
    assert_eq!(parts, [ItemPart::Text("shipped".to_owned()), ItemPart::Data(json!({"state": "shipped"}))]);
    assert!(!facts.is_error && facts.code.is_none() && facts.change.is_none());
    let calls = fixture.tools.calls.lock().unwrap();
    assert_eq!(calls[0].name, "shop.get");
    assert_eq!(calls[0].idempotency_key, "task-1/3/0");
    assert_eq!(calls[0].timeout, Duration::from_secs(5));
    assert_eq!(serde_json::Value::from(calls[0].arguments.clone()), json!({"order_id": "1"}));
}

#[tokio::test]
async fn a_tool_that_says_it_failed_is_a_result() {
    let output = ToolOutput { is_error: true, parts: vec![ToolPart::Text("no".to_owned())], truncated: true };
    let fixture = answering(Ok(output));
    let input = fixture.tool_input("shop.get", json!({})).await;
    let facts = fixture.call_tool(&input).await.unwrap();
    assert!(facts.is_error);
    let parts = fixture.result_parts(&facts).await;
    assert!(matches!(&parts[0], ItemPart::Text(text) if text.contains("more than 33554432 bytes")));
    assert_eq!(parts[1], ItemPart::Text("no".to_owned()));
}

#[tokio::test]
async fn results_are_kept_without_secrets() {
    let fixture = returning(vec![
        ToolPart::Text(format!("key {SECRET}")),
        ToolPart::Data(json!({"a": [SECRET]})),
        ToolPart::Link { uri: format!("https://x.example/?k={SECRET}"), media_type: None },
    ]);
    let input = fixture.tool_input("shop.get", json!({})).await;
    let shown = format!("{:?}", fixture.result_parts(&fixture.call_tool(&input).await.unwrap()).await);
    assert!(!shown.contains(SECRET));
    assert_eq!(shown.matches("[REDACTED]").count(), 3);
}

#[tokio::test]
async fn errors_become_what_the_task_may_do_about_them() {
    let retryable = FailureKind::Retryable { after_ms: None };
    let cases: [(ToolErrorKind, FailureKind, ErrorCode); 6] = [
        (ToolErrorKind::NotSent, retryable, codes::TOOL_UNAVAILABLE),
        (ToolErrorKind::OutcomeUnknown, FailureKind::OutcomeUnknown, codes::TOOL_OUTCOME_UNKNOWN),
        (ToolErrorKind::NotFound, FailureKind::Fatal, codes::TOOL_NOT_FOUND),
        (ToolErrorKind::Refused, FailureKind::Fatal, codes::TOOL_INVALID_ARGUMENTS),
        (ToolErrorKind::DefinitionChanged, FailureKind::Fatal, codes::TOOL_SCHEMA_CHANGED),
        (ToolErrorKind::Canceled, FailureKind::Canceled, codes::TOOL_INTERRUPTED),
    ];
    for (kind, expected, code) in cases {
        let fixture = answering(Err(ToolError::new(kind, format!("server shop says {SECRET}"))));
        let input = fixture.tool_input("shop.get", json!({})).await;
        let failed = fixture.call_tool(&input).await.unwrap_err();
        assert_eq!((failed.kind, failed.code), (expected, code));
        assert_eq!(failed.message, "server shop says [REDACTED]");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_a_cancel_is_left_behind() {
    let tools = Tools { answer: Some(Box::new(|_| Box::pin(std::future::pending()))), ..Tools::default() };
    let fixture = Fixture::with_tools(tools);
    let input = fixture.tool_input("shop.get", json!({})).await;
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        fixture.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(fixture.call_tool(&input), cancel);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Canceled);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ends_after_a_cancel_tells_how() {
    let tools = Tools {
        answer: Some(Box::new(|call| {
            Box::pin(async move {
                call.cancel.cancelled().await;
                Err(ToolError::new(ToolErrorKind::OutcomeUnknown, "it was running"))
            })
        })),
        ..Tools::default()
    };
    let fixture = Fixture::with_tools(tools);
    let input = fixture.tool_input("shop.get", json!({})).await;
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        fixture.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(fixture.call_tool(&input), cancel);
    assert_eq!(ended.unwrap_err().kind, FailureKind::OutcomeUnknown);
}
