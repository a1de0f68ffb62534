//! What errors about one response have in common.

use harness_ports::{ModelError, ModelErrorKind};
use http::{HeaderMap, StatusCode};

use crate::{
    Api,
    http_failure::{self, ErrorBody, Failures},
    wire::PieceError,
};

/// One response, for its errors.
#[derive(Debug)]
pub(crate) struct Facts {
    failures: Failures,
    api: Api,
    status: StatusCode,
    headers: HeaderMap,
    pub(crate) request_id: Option<String>,
}

impl Facts {
    pub(crate) fn new(failures: Failures, api: Api, status: StatusCode, headers: HeaderMap) -> Self {
        let request_id = http_failure::request_id(&headers);
        Self { failures, api, status, headers, request_id }
    }

    pub(crate) fn error(&self, kind: ModelErrorKind, what: &str) -> ModelError {
        let what = format!("HTTP {}: {what}", self.status.as_u16());
        let error = self.failures.error(kind, &what);
        ModelError { status: Some(self.status.as_u16()), request_id: self.request_id.clone(), ..error }
    }

    pub(crate) fn retryable(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::Retryable { after: None }, what)
    }

    pub(crate) fn truncated(&self) -> ModelError {
        self.retryable("the stream ended before the answer did")
    }

    pub(crate) fn unparseable(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::Unparseable, what)
    }

    pub(crate) fn empty(&self) -> ModelError {
        self.error(ModelErrorKind::Empty, "the answer holds no text, no tool call and no refusal")
    }

    pub(crate) fn provider_error(&self, body: &ErrorBody) -> ModelError {
        self.error(body.classify(self.status, &self.headers), body.message())
    }

    /// An answer other than success.
    pub(crate) fn refused(&self, body: &[u8]) -> ModelError {
        if self.status.is_redirection() {
            let what = "answered with a redirect, which is not followed";
            return self.error(ModelErrorKind::InvalidRequest, what);
        }
        self.provider_error(&ErrorBody::parse(body))
    }

    /// A piece that is not part of an answer; `data` is the piece.
    pub(crate) fn piece(&self, error: PieceError, data: &[u8]) -> ModelError {
        match error {
            PieceError::Provider(body) => self.provider_error(&body),
            PieceError::Calls(error) => self.unparseable(&error.to_string()),
            PieceError::TooMuch => self.unparseable("the answer holds more items than an answer may"),
            PieceError::Unparseable if data.is_empty() => self.unparseable("an empty body"),
            PieceError::Unparseable => {
                let (noun, snippet) = (self.api.answer_noun(), http_failure::snippet(data));
                self.unparseable(&format!("not {noun}: {snippet}"))
            }
        }
    }
}
