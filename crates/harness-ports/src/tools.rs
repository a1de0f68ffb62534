//! The tool port: a catalogue and calls.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use harness_model::{ErrorCode, codes};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// A tool as it was registered.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Registry name: `<plugin>/<server>.<tool>`, or a bare name for the harness's own.
    pub name: String,
    /// What the model reads about it. From outside; cleaned and capped.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// Calling it again with the same arguments changes nothing more: the idempotent or the read-only hint is set.
    pub idempotent: bool,
    /// It changes nothing at all: the read-only hint is set. Implies `idempotent`.
    pub read_only: bool,
    /// It acts once per idempotency key, so that a call whose outcome is unknown may be repeated with the same key.
    pub deduplicates: bool,
}

/// One call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Registry name.
    pub name: String,
    /// Arguments that match the schema.
    pub arguments: Map<String, Value>,
    /// Equal across retries of one intended call, different for two calls.
    pub idempotency_key: String,
    /// How long the call may take.
    pub timeout: Duration,
    /// Ask the tool to stop.
    pub cancel: CancellationToken,
}

/// The result of a call, as it came; untrusted.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// Whether the tool says it failed.
    pub is_error: bool,
    /// The content, in order. Structured content is a `Data` part.
    pub parts: Vec<ToolPart>,
    /// Something of the result was dropped because it was larger than `limits::TOOL_RESULT_BYTES_MAX`.
    pub truncated: bool,
}

/// One part of a tool result.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolPart {
    /// Text.
    Text(String),
    /// A JSON value.
    Data(Value),
    /// An image, audio or embedded resource.
    Binary {
        /// Media type.
        media_type: String,
        /// The bytes.
        bytes: Bytes,
    },
    /// A link to a resource.
    Link {
        /// Where it leads.
        uri: String,
        /// Media type, when known.
        media_type: Option<String>,
    },
}

/// Where tools come from.
///
/// Contract: sessions live long and heal by themselves (a dead process is respawned, an expired session initialised
/// again, once per call); `call` never repeats a request that may have taken effect unless the tool is idempotent or
/// deduplicates; results are bounded; one stuck or dead server never disturbs another.
pub trait ToolSource: Send + Sync {
    /// The tools, sorted by name, as registered at start.
    fn catalogue(&self) -> Vec<ToolDefinition>;

    /// Calls a tool.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Ends every session and waits for the processes to be gone, for a bounded time.
    fn shutdown(&self) -> BoxFuture<'_, ()>;

    /// Files of the harness's own that hold what the servers print on stderr, for people who look for a cause.
    fn diagnostics(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What may be done about it.
    pub kind: ToolErrorKind,
    /// What happened, naming server and tool, bounded and without secrets.
    pub message: String,
}

/// Classes of tool errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// The server could not be reached; the call was not sent.
    NotSent,
    /// The server is there and cannot be used; the call did not take effect. Trying again would not help.
    Unusable,
    /// The call was sent and no answer came: it may have taken effect.
    OutcomeUnknown,
    /// No such tool.
    NotFound,
    /// The server refused the call; it did not take effect.
    Refused,
    /// The definition is no longer the registered one; the call was not sent.
    DefinitionChanged,
    /// Stopped on request.
    Canceled,
}

impl ToolError {
    /// An error of this kind.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self.kind {
            ToolErrorKind::NotSent | ToolErrorKind::Unusable => codes::TOOL_UNAVAILABLE,
            ToolErrorKind::OutcomeUnknown => codes::TOOL_OUTCOME_UNKNOWN,
            ToolErrorKind::NotFound => codes::TOOL_NOT_FOUND,
            ToolErrorKind::Refused => codes::TOOL_INVALID_ARGUMENTS,
            ToolErrorKind::DefinitionChanged => codes::TOOL_SCHEMA_CHANGED,
            ToolErrorKind::Canceled => codes::TOOL_INTERRUPTED,
        }
    }
}
