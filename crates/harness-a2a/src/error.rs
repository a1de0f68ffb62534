//! The error table of the protocol: one row per error, used by both bindings and by the client.

use std::error::Error;

use harness_ports::{EngineError, StoreError};
use serde_json::{Value, json};

/// Errors of A2A and JSON-RPC. Source: A2A 1.0.1 section 5.4; JSON-RPC 2.0 section 5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such task, or not for this caller.
    TaskNotFound,
    /// The task has ended.
    TaskNotCancelable,
    /// The agent sends no push notifications.
    PushNotificationNotSupported,
    /// The agent, or the task as it is, does not support this.
    UnsupportedOperation,
    /// A media type that the agent does not take.
    ContentTypeNotSupported,
    /// An agent answered against the protocol.
    InvalidAgentResponse,
    /// The extended card is declared and not configured.
    ExtendedCardNotConfigured,
    /// The client does not declare an extension that is required.
    ExtensionSupportRequired,
    /// Another protocol version.
    VersionNotSupported,
    /// Not JSON.
    ParseError,
    /// Not a request.
    InvalidRequest,
    /// No such operation.
    MethodNotFound,
    /// The parameters are not valid.
    InvalidParams,
    /// Something inside the agent failed.
    Internal,
    /// The agent is stopping or overloaded; the same request may succeed later.
    Unavailable,
    /// Credentials are missing or wrong.
    Unauthenticated,
}

struct Row {
    kind: ErrorKind,
    code: i32,
    http: u16,
    status: &'static str,
    reason: &'static str,
}

const fn row(kind: ErrorKind, code: i32, http: u16, status: &'static str, reason: &'static str) -> Row {
    Row { kind, code, http, status, reason }
}

/// Kind, JSON-RPC code, HTTP status, google.rpc status, reason; in the order of [`ErrorKind`].
const TABLE: [Row; 16] = [
    row(ErrorKind::TaskNotFound, -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    row(ErrorKind::TaskNotCancelable, -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    row(
        ErrorKind::PushNotificationNotSupported,
        -32003,
        400,
        "FAILED_PRECONDITION",
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ),
    row(ErrorKind::UnsupportedOperation, -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    row(ErrorKind::ContentTypeNotSupported, -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    row(ErrorKind::InvalidAgentResponse, -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
    row(
        ErrorKind::ExtendedCardNotConfigured,
        -32007,
        400,
        "FAILED_PRECONDITION",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    row(
        ErrorKind::ExtensionSupportRequired,
        -32008,
        400,
        "FAILED_PRECONDITION",
        "EXTENSION_SUPPORT_REQUIRED",
    ),
    row(ErrorKind::VersionNotSupported, -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
    row(ErrorKind::ParseError, -32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"),
    row(ErrorKind::InvalidRequest, -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    row(ErrorKind::MethodNotFound, -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
    row(ErrorKind::InvalidParams, -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    row(ErrorKind::Internal, -32603, 500, "INTERNAL", "INTERNAL_ERROR"),
    // JSON-RPC has no code of its own for this one; peers that read HTTP statuses see 503.
    row(ErrorKind::Unavailable, -32603, 503, "UNAVAILABLE", "UNAVAILABLE"),
    // The protocol leaves this one to HTTP; the code is one of those that JSON-RPC leaves to servers.
    row(ErrorKind::Unauthenticated, -32000, 401, "UNAUTHENTICATED", "UNAUTHENTICATED"),
];

impl ErrorKind {
    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The JSON-RPC code.
    pub fn code(self) -> i32 {
        self.row().code
    }

    /// The HTTP status.
    pub fn http_status(self) -> u16 {
        self.row().http
    }

    /// The kind with this JSON-RPC code. Codes that servers give meanings of their own have none.
    pub fn from_code(code: i32) -> Option<Self> {
        let found = TABLE.iter().find(|row| row.code == code).map(|row| row.kind);
        found.filter(|kind| *kind != Self::Unauthenticated)
    }

    /// The kind with this reason. Source: A2A 1.0.1 section 11.6, `ErrorInfo.reason`.
    pub(crate) fn from_reason(reason: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.reason == reason).map(|row| row.kind)
    }
}

/// An error on its way to a peer: what the peer reads, and what only the log is told.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// Which error.
    pub kind: ErrorKind,
    /// What the peer reads; no internals.
    pub message: String,
    field: Option<String>,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl A2aError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), field: None, source: None }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// Invalid parameters, naming the field: a path such as `message.parts[0]`.
    pub(crate) fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::invalid_params(message) }
    }

    /// One text for all of: no such task, a task of others, a task that this caller asserts nobody for.
    pub(crate) fn task_not_found() -> Self {
        Self::new(ErrorKind::TaskNotFound, "task not found")
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::UnsupportedOperation, message)
    }

    /// The server stops while somebody waits.
    pub(crate) fn stopping() -> Self {
        Self::new(ErrorKind::Unavailable, "the agent is stopping; repeat the request in a moment")
    }

    /// Something failed inside; the cause goes to the log only.
    pub(crate) fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let mut error = Self::new(ErrorKind::Internal, "something failed inside the agent");
        error.source = Some(cause.into());
        error
    }

    /// The error object of a JSON-RPC response.
    pub(crate) fn to_json_rpc(&self) -> Value {
        json!({"code": self.kind.code(), "message": self.message, "data": self.details()})
    }

    /// The body of an HTTP+JSON error response. Source: A2A 1.0.1 section 11.6, google.rpc.Status as JSON.
    pub(crate) fn to_rest(&self) -> Value {
        let row = self.kind.row();
        json!({"error": {
            "code": row.http, "status": row.status, "message": self.message, "details": self.details()
        }})
    }

    fn details(&self) -> Value {
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.row().reason,
            "domain": "a2a-protocol.org",
        });
        match &self.field {
            None => json!([info]),
            Some(field) => json!([info, {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": field, "description": self.message}],
            }]),
        }
    }

    /// The cause and its causes in one line, when there is something for the log.
    pub(crate) fn cause_chain(&self) -> Option<String> {
        let mut next: Option<&dyn Error> = Some(self.source.as_deref()?);
        let mut chain = Vec::new();
        while let Some(error) = next {
            chain.push(error.to_string());
            next = error.source();
        }
        Some(chain.join(": "))
    }
}

impl From<StoreError> for A2aError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable { .. } | StoreError::Locked { .. } => Self {
                source: Some(Box::new(error)),
                ..Self::new(ErrorKind::Unavailable, "the agent's store is not available; repeat the request")
            },
            StoreError::Conflict { .. } | StoreError::Corrupt { .. } => Self::internal(error),
        }
    }
}

impl From<EngineError> for A2aError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Stopping => Self::stopping(),
            EngineError::Unavailable(_) => Self {
                source: Some(Box::new(error)),
                ..Self::new(ErrorKind::Unavailable, "the agent's engine is not available; repeat the request")
            },
            EngineError::UnknownType(_) | EngineError::SetAside { .. } => Self::internal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_kinds() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(row.kind.row().reason, row.reason);
        }
    }

    #[test]
    fn the_rows_are_those_of_the_specification() {
        let expected = "\
            TASK_NOT_FOUND -32001 NOT_FOUND 404\n\
            TASK_NOT_CANCELABLE -32002 FAILED_PRECONDITION 400\n\
            PUSH_NOTIFICATION_NOT_SUPPORTED -32003 FAILED_PRECONDITION 400\n\
            UNSUPPORTED_OPERATION -32004 FAILED_PRECONDITION 400\n\
            CONTENT_TYPE_NOT_SUPPORTED -32005 INVALID_ARGUMENT 400\n\
            INVALID_AGENT_RESPONSE -32006 INTERNAL 500\n\
            EXTENDED_AGENT_CARD_NOT_CONFIGURED -32007 FAILED_PRECONDITION 400\n\
            EXTENSION_SUPPORT_REQUIRED -32008 FAILED_PRECONDITION 400\n\
            VERSION_NOT_SUPPORTED -32009 FAILED_PRECONDITION 400";
        let table: Vec<String> = TABLE[..9]
            .iter()
            .map(|row| format!("{} {} {} {}", row.reason, row.code, row.status, row.http))
            .collect();
        assert_eq!(table.join("\n"), expected);
    }

    #[test]
    fn causes_stay_out_of_what_peers_read() {
        let error = A2aError::internal("SELECT broke in /var/db");
        let wire = format!("{}{}", error.to_json_rpc(), error.to_rest());
        assert!(!wire.contains("SELECT") && error.cause_chain().unwrap().contains("SELECT"));
    }
}
