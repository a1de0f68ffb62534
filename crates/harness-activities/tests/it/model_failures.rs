//! Model calls that give no answer.

use harness_model::codes;
use harness_ports::{ActivityFailure, FailureKind, ModelError, ModelErrorKind};

use crate::fixture::{Fixture, Speak, answer, model_input};

async fn failure(script: Speak) -> ActivityFailure {
    let fixture = Fixture::new();
    fixture.script([script]);
    fixture.outcome(&model_input(), "run-1").await.unwrap_err()
}

#[tokio::test]
async fn errors_of_the_provider_keep_code_and_kind() {
    let mut error = ModelError::new(ModelErrorKind::Quota, "insufficient quota");
    error.status = Some(429);
    error.request_id = Some("req_7".to_owned());
    let failed = failure(Speak::Fail(error)).await;
    assert_eq!((failed.code, failed.kind), (codes::PROVIDER_QUOTA, FailureKind::Fatal));
    assert_eq!(
        failed.message,
        "insufficient quota (status 429, request req_7); add quota to the account of provider scripted, or choose \
         another model"
    );
}

#[tokio::test]
async fn a_stream_that_breaks_its_contract_is_tried_again() {
    let stopped = failure(Speak::Stop).await;
    assert_eq!(
        (stopped.code, stopped.kind),
        (codes::PROVIDER_RETRYABLE, FailureKind::Retryable { after_ms: None })
    );
    let empty = failure(Speak::Done(answer(""))).await;
    assert_eq!((empty.code, empty.kind), (codes::PROVIDER_EMPTY, FailureKind::Retryable { after_ms: None }));
}

#[tokio::test]
async fn a_conversation_that_is_not_there_is_fatal() {
    let fixture = Fixture::new();
    let mut input = model_input();
    input.manifest = Some(harness_model::BlockRef::to(b"nothing"));
    let failed = fixture.outcome(&input, "run-1").await.unwrap_err();
    assert_eq!((failed.code, failed.kind), (codes::STATE_INVALID, FailureKind::Fatal));
}
