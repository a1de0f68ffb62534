//! The model port: one request, one stream of text and one whole answer.

use std::{sync::Arc, time::Duration};

use futures::stream::BoxStream;
use harness_model::{CallId, ErrorCode, ItemPart, MessageId, ModelOutput, TaskId, codes};
use serde_json::Value;

use crate::ToolDefinition;

/// What a model is asked. Everything in it has been cleaned, fenced and capped.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// The model, when the task chose one; otherwise the provider's default.
    pub model: Option<String>,
    /// Reasoning effort, when the task chose one.
    pub reasoning_effort: Option<String>,
    /// The static prefix: byte-identical across the turns of a task.
    pub instructions: String,
    /// The conversation. Every call of a model answer is followed by exactly one result for it.
    pub input: Vec<InputItem>,
    /// The tools, sorted by name. Shared: every request of a process has the same ones.
    pub tools: Arc<[ToolDefinition]>,
    /// A JSON schema the text must match.
    pub response_format: Option<Value>,
    /// Equal for requests that share a prefix.
    pub cache_key: String,
    /// Output tokens the model may write.
    pub max_output_tokens: u32,
    /// What the request is for; never sent to a provider.
    pub meta: RequestMeta,
}

/// What a request is for. Recorded providers and logs use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMeta {
    /// The task.
    pub task_id: TaskId,
    /// The turn, from 1.
    pub turn: u32,
    /// The newest message of a participant.
    pub message_id: Option<MessageId>,
    /// Its text.
    pub message_text: String,
}

/// One item of the conversation as the provider sends it.
#[derive(Clone, Debug, PartialEq)]
pub enum InputItem {
    /// Said to the model.
    User {
        /// The parts.
        parts: Vec<ItemPart>,
    },
    /// An earlier answer of the model.
    Model(ModelOutput),
    /// The result of one call.
    ToolResult {
        /// The call.
        call_id: CallId,
        /// Registry name of the tool.
        name: String,
        /// Whether it failed.
        is_error: bool,
        /// The result.
        parts: Vec<ItemPart>,
    },
}

/// What a model call yields: any number of texts, then one answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// More text of the answer.
    TextDelta(String),
    /// The whole answer; always last. Its text is the concatenation of the deltas.
    Done(Box<ModelOutput>),
}

/// The stream of one model call. Dropping it cancels the call.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// What a provider is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// Name of the provider in the configuration.
    pub provider: String,
    /// Default model.
    pub model: String,
    /// Tokens the model can read and write.
    pub context_window_tokens: u64,
    /// `scheme://host[:port]`, or a file for scripted turns.
    pub endpoint: String,
    /// The wire: `responses`, `chat_completions`, `messages`, `scripted`.
    pub api: &'static str,
}

/// Calls a model.
///
/// Contract: a stream ends with `Done` or with an error, never in silence; a stream that was cut short is an error and
/// yields no call; memory is bounded whatever the far side sends; nothing is retried inside; no redirect is followed.
pub trait ModelProvider: Send + Sync {
    /// What this provider is.
    fn info(&self) -> ModelInfo;

    /// What answers a request for this model. A provider that is one server answers for all of its models.
    fn info_for(&self, model: Option<&str>) -> ModelInfo {
        let _unused = model;
        self.info()
    }

    /// Starts one call.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// Starts the given try of a call, from 1: the same request, after as many failures as there were tries before.
    ///
    /// A provider that is one server treats all tries alike. One that wraps others passes the number on, and may choose
    /// by it, but by nothing that a restart would forget.
    fn stream_attempt(&self, request: ModelRequest, attempt: u32) -> ModelStream {
        let _unused = attempt;
        self.stream(request)
    }
}

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What may be done about it.
    pub kind: ModelErrorKind,
    /// What happened, with provider and status, bounded and without secrets.
    pub message: String,
    /// HTTP status; `None` when there was no answer.
    pub status: Option<u16>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
}

/// Classes of model errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// Overload, 5xx, time-out, reset, truncated stream: worth another try, not before the given time.
    Retryable {
        /// Least wait the provider asked for.
        after: Option<Duration>,
    },
    /// The account has no quota left.
    Quota,
    /// The key was refused.
    Auth,
    /// The request does not fit the context window.
    ContextOverflow,
    /// The request is not valid.
    InvalidRequest,
    /// The answer cannot be understood; few tries.
    Unparseable,
    /// The answer was empty: no text, no call, no refusal; one more try.
    Empty,
    /// The scripted turns have no answer for this request.
    ScriptExhausted,
}

impl ModelError {
    /// An error of this kind without status.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, request_id: None }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self.kind {
            ModelErrorKind::Retryable { .. } => codes::PROVIDER_RETRYABLE,
            ModelErrorKind::Quota => codes::PROVIDER_QUOTA,
            ModelErrorKind::Auth => codes::PROVIDER_AUTH,
            ModelErrorKind::ContextOverflow => codes::PROVIDER_CONTEXT_OVERFLOW,
            ModelErrorKind::InvalidRequest | ModelErrorKind::Unparseable => codes::PROVIDER_FAILED,
            ModelErrorKind::Empty => codes::PROVIDER_EMPTY,
            ModelErrorKind::ScriptExhausted => codes::MODEL_SCRIPT_EXHAUSTED,
        }
    }
}
