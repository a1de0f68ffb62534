//! Activities: the only place with effects. An engine runs them and records how they ended.

use std::{fmt, time::Duration};

use futures::future::BoxFuture;
use harness_model::{ActivityId, ErrorCode, Timestamp, TraceParent, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// An activity that a workflow asked for. Durable before it is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTask {
    /// Unique within the workflow.
    pub activity_id: ActivityId,
    /// Versioned name, such as `invoke_model.v1`.
    pub name: String,
    /// References and small facts; at most `limits::HISTORY_PAYLOAD_BYTES_MAX` bytes as JSON.
    pub input: Value,
    /// How the engine runs it.
    pub options: ActivityOptions,
    /// Where in a trace the signal came from that led to it. Workflows leave it empty; the engine fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// How an engine runs one activity. Each activity is tried once; retries are decided by the workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityOptions {
    /// From start to result; the engine ends it with `FailureKind::TimedOut` after that.
    #[serde(with = "millis")]
    pub start_to_close: Duration,
    /// What to do when the process died while the activity ran.
    pub on_crash: OnCrash,
}

/// What an engine does with an activity that was announced and never recorded as ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCrash {
    /// Run it again: it repeats no effect, or its far side recognises the operation.
    Rerun,
    /// Never run it again: record `FailureKind::OutcomeUnknown`.
    ReportUnknown,
}

/// What an activity gets besides its input.
#[derive(Clone, Debug)]
pub struct ActivityContext {
    /// The workflow that asked.
    pub workflow_id: WorkflowId,
    /// Names this one execution; another execution of the same activity (after a crash) has another one.
    pub run_id: String,
    /// When the execution started.
    pub started_at: Timestamp,
    /// Cancelled when the workflow no longer wants the result, or when the process drains. The activity stops soon.
    pub cancel: CancellationToken,
}

/// Runs activities by name. Implementations own every effect.
pub trait ActivityHost: Send + Sync {
    /// Runs one activity to its end. Cancelling the context's token asks it to stop; dropping the future abandons it.
    fn run(
        &self,
        task: ActivityTask,
        context: ActivityContext,
    ) -> BoxFuture<'static, Result<Value, ActivityFailure>>;
}

/// How an activity failed. Recorded; the text is scrubbed and bounded before it gets here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityFailure {
    /// Stable code.
    pub code: ErrorCode,
    /// What happened, for people and for the model.
    pub message: String,
    /// What a workflow may do about it.
    pub kind: FailureKind,
}

/// Classes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Did not take effect, or may take effect again; worth another try, not before the given milliseconds.
    Retryable {
        /// Least wait before the next try, when the far side named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// Trying again would not help.
    Fatal,
    /// Ran out of time; nobody knows whether it took effect.
    TimedOut,
    /// Stopped because the workflow asked for it.
    Canceled,
    /// The process died while it ran; nobody knows whether it took effect.
    OutcomeUnknown,
}

impl ActivityFailure {
    /// A failure worth another try.
    pub fn retryable(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), kind: FailureKind::Retryable { after_ms: None } }
    }

    /// A failure that another try would not mend.
    pub fn fatal(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), kind: FailureKind::Fatal }
    }

    /// The end of an activity that was asked to stop.
    pub fn canceled() -> Self {
        Self {
            code: harness_model::codes::HARNESS_ERROR,
            message: "stopped on request".to_owned(),
            kind: FailureKind::Canceled,
        }
    }
}

impl fmt::Display for ActivityFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.message)
    }
}

impl std::error::Error for ActivityFailure {}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
