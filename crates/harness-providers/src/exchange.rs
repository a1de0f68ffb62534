//! One recorded exchange with a model, as it is in its file. Versioned; files of other versions are refused.

use std::time::Duration;

use harness_model::{BlockId, ModelOutput, Redactor, StoredItem, limits::JSON_DEPTH_MAX, parse_json_bounded};
use harness_ports::{InputItem, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ToolDefinition};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the `format` of a file says.
const FORMAT: &str = "tiny-harness/model-exchange.v1";
/// Characters of a fingerprint.
const FINGERPRINT_CHARS: usize = 16;

/// One exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exchange {
    pub(crate) format: Format,
    pub(crate) provider: RecordedProvider,
    /// The task, for people; nothing depends on it.
    pub(crate) task_id: String,
    /// The turn, for people.
    pub(crate) turn: u32,
    /// Which try of the call it was.
    pub(crate) attempt: u32,
    /// What was asked: all that counts for the answer.
    pub(crate) request: Value,
    /// The text in the pieces it came in.
    pub(crate) deltas: Vec<String>,
    pub(crate) outcome: Outcome,
}

/// The only format there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format;

impl Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(FORMAT)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        if found == FORMAT {
            Ok(Self)
        } else {
            Err(serde::de::Error::custom(format!("the format is {found:?}, not {FORMAT:?}")))
        }
    }
}

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedProvider {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) endpoint: String,
    pub(crate) api: String,
    pub(crate) context_window_tokens: u64,
}

impl From<ModelInfo> for RecordedProvider {
    fn from(info: ModelInfo) -> Self {
        Self {
            name: info.provider,
            model: info.model,
            endpoint: info.endpoint,
            api: info.api.to_owned(),
            context_window_tokens: info.context_window_tokens,
        }
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Answer(Box<ModelOutput>),
    Error(RecordedError),
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedError {
    kind: RecordedErrorKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_ms: Option<u64>,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedErrorKind {
    Retryable,
    Quota,
    Auth,
    ContextOverflow,
    InvalidRequest,
    Unparseable,
    Empty,
    ScriptExhausted,
}

impl Exchange {
    /// Masks what came back. A secret may be spread over several pieces of text: then they are joined.
    pub(crate) fn masked(mut self, redactor: &Redactor) -> Self {
        let whole = self.deltas.concat();
        let masked = redactor.text(&whole);
        if masked != whole {
            self.deltas = vec![masked];
        }
        match &mut self.outcome {
            Outcome::Answer(output) => {
                output.text = redactor.text(&output.text);
                output.refusal = output.refusal.as_deref().map(|text| redactor.text(text));
                for call in &mut output.calls {
                    call.arguments = masked_arguments(&call.arguments, redactor);
                }
                output.raw_items.iter_mut().for_each(|item| redactor.value(item));
            }
            Outcome::Error(error) => error.message = redactor.text(&error.message),
        }
        self
    }
}

/// Masks value by value, because masking the text could leave no JSON behind; what holds no secret keeps its text.
fn masked_arguments(arguments: &str, redactor: &Redactor) -> String {
    let Ok(value) = parse_json_bounded(arguments.as_bytes(), JSON_DEPTH_MAX) else {
        return redactor.text(arguments);
    };
    let mut masked = value.clone();
    redactor.value(&mut masked);
    if masked == value { arguments.to_owned() } else { masked.to_string() }
}

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        let mut after_ms = None;
        let kind = match &error.kind {
            ModelErrorKind::Retryable { after } => {
                after_ms = after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                RecordedErrorKind::Retryable
            }
            ModelErrorKind::Quota => RecordedErrorKind::Quota,
            ModelErrorKind::Auth => RecordedErrorKind::Auth,
            ModelErrorKind::ContextOverflow => RecordedErrorKind::ContextOverflow,
            ModelErrorKind::InvalidRequest => RecordedErrorKind::InvalidRequest,
            ModelErrorKind::Unparseable => RecordedErrorKind::Unparseable,
            ModelErrorKind::Empty => RecordedErrorKind::Empty,
            ModelErrorKind::ScriptExhausted => RecordedErrorKind::ScriptExhausted,
        };
        Self {
            kind,
            after_ms,
            message: error.message.clone(),
            status: error.status,
            request_id: error.request_id.clone(),
        }
    }
}

impl From<&RecordedError> for ModelError {
    fn from(recorded: &RecordedError) -> Self {
        let kind = match recorded.kind {
            RecordedErrorKind::Retryable => {
                ModelErrorKind::Retryable { after: recorded.after_ms.map(Duration::from_millis) }
            }
            RecordedErrorKind::Quota => ModelErrorKind::Quota,
            RecordedErrorKind::Auth => ModelErrorKind::Auth,
            RecordedErrorKind::ContextOverflow => ModelErrorKind::ContextOverflow,
            RecordedErrorKind::InvalidRequest => ModelErrorKind::InvalidRequest,
            RecordedErrorKind::Unparseable => ModelErrorKind::Unparseable,
            RecordedErrorKind::Empty => ModelErrorKind::Empty,
            RecordedErrorKind::ScriptExhausted => ModelErrorKind::ScriptExhausted,
        };
        Self {
            kind,
            message: recorded.message.clone(),
            status: recorded.status,
            request_id: recorded.request_id.clone(),
        }
    }
}

/// All of a request that counts for its answer, masked. What it is for and its cache key are left out: they name the
/// task, and another run of the same conversation is another task.
pub(crate) fn asked(request: &ModelRequest, redactor: &Redactor) -> Value {
    let input: Vec<StoredItem> = request.input.iter().cloned().map(stored).collect();
    let mut value = json!({
        "model": request.model,
        "reasoning_effort": request.reasoning_effort,
        "instructions": request.instructions,
        "tools": request.tools.iter().map(tool).collect::<Vec<Value>>(),
        "response_format": request.response_format,
        "max_output_tokens": request.max_output_tokens,
        "input": input,
    });
    redactor.value(&mut value);
    value
}

/// Equal for equal requests.
pub(crate) fn fingerprint(asked: &Value) -> String {
    BlockId::of(asked.to_string().as_bytes()).as_str()[..FINGERPRINT_CHARS].to_owned()
}

fn stored(item: InputItem) -> StoredItem {
    match item {
        InputItem::User { parts } => StoredItem::User { parts, source: None },
        InputItem::Model(output) => StoredItem::Model(output),
        InputItem::ToolResult { call_id, name, is_error, parts } => {
            StoredItem::ToolResult { call_id, name, is_error, parts }
        }
    }
}

fn tool(tool: &ToolDefinition) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
}
