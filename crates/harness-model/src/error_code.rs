//! Error codes: stable names that reach people and peers. Each has a page under `docs/errors/`.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

/// A stable error code, such as `tool.not_found`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(Cow<'static, str>);

impl ErrorCode {
    /// The code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The codes. Adding one means adding its page.
pub mod codes {
    use super::{Cow, ErrorCode};

    macro_rules! define {
        ($($name:ident = $text:literal, $meaning:literal;)*) => {
            $(#[doc = $meaning] pub const $name: ErrorCode = ErrorCode(Cow::Borrowed($text));)*
            /// Every code with its one-line meaning.
            pub(super) const LIST: &[(&str, &str)] = &[$(($text, $meaning)),*];
        };
    }

    define! {
        HARNESS_ERROR = "harness.error", "Something inside the harness failed; the log says what.";
        CONFIG_INVALID = "config.invalid", "The configuration has a problem; nothing was started.";
        STORE_WRITE_FAILED = "store.write_failed", "The store could not keep a change; the operation did not happen.";
        STORE_LOCKED = "store.locked", "Another process owns the store.";
        STORE_UNREADABLE = "store.unreadable", "The store cannot be opened or is of an unknown version.";
        ENTITY_NOT_FOUND = "entity.not_found", "No entity of this id is registered.";
        ENTITY_CONFLICT = "entity.conflict", "Two entities claim the same id and version.";
        AGENT_UNKNOWN = "agent.unknown", "The named agent is not configured.";
        HOOK_ABORT = "hook.abort", "A hook vetoed the operation.";
        PLUGIN_INVALID = "plugin.invalid", "A plugin or one of its parts is not valid and was not loaded.";
        PLUGIN_COMPONENT_SKIPPED = "plugin.component_skipped", "One part of a plugin was skipped; the rest was loaded.";
        SKILL_INVALID = "skill.invalid", "A skill is not valid, unknown, or not loaded.";
        PROMPT_INVALID = "prompt.invalid", "A prompt of a plugin is not valid.";
        TOOL_NOT_FOUND = "tool.not_found", "The model named a tool that does not exist.";
        TOOL_INVALID_ARGUMENTS = "tool.invalid_arguments", "The arguments of a tool call do not match its schema.";
        TOOL_NOT_RETRIED = "tool.not_retried", "A tool call that may not be repeated failed before it took effect.";
        TOOL_OUTCOME_UNKNOWN = "tool.outcome_unknown", "A tool call may or may not have taken effect.";
        TOOL_SCHEMA_CHANGED = "tool.schema_changed", "A tool's definition changed since it was registered.";
        TOOL_UNAVAILABLE = "tool.unavailable", "The server of a tool cannot be reached.";
        TOOL_INTERRUPTED = "tool.interrupted", "A tool call was stopped by an interrupt.";
        TOOL_UNBOUND = "tool.unbound", "A tool was called outside of a task.";
        RESULT_UNKNOWN = "result.unknown", "No kept result has this handle.";
        PLAN_CYCLE = "plan.cycle", "A plan's steps are not a valid plan.";
        PLAN_MISSING = "plan.missing", "The task has no plan yet.";
        PLAN_UNKNOWN_STEP = "plan.unknown_step", "The plan has no such step.";
        CHANNEL_NOT_A_MEMBER = "channel.not_a_member", "The participant does not take part in this task.";
        TASK_EFFECTS_EXIST = "task.effects_exist", "A task that has acted can no longer be rejected.";
        A2A_UNSUPPORTED_EXTENSION = "a2a.unsupported_extension", "An extension is required that the harness does not know.";
        A2A_REQUEST_FAILED = "a2a.request_failed", "Another agent refused a request or could not be reached.";
        PROVIDER_FAILED = "provider.failed", "A model provider refused the request or answered nonsense.";
        PROVIDER_RETRYABLE = "provider.retryable", "A model provider is overloaded, limited or unreachable; it is tried again.";
        PROVIDER_AUTH = "provider.auth", "A model provider refused the key.";
        PROVIDER_QUOTA = "provider.quota", "The account at the model provider has no quota left.";
        PROVIDER_CONTEXT_OVERFLOW = "provider.context_overflow", "The request is larger than the model's context window.";
        PROVIDER_EMPTY = "provider.empty", "The model answered nothing at all.";
        MODEL_SCRIPT_INVALID = "model.script_invalid", "The file of scripted turns is not valid.";
        MODEL_SCRIPT_EXHAUSTED = "model.script_exhausted", "No scripted turn matches what the model was shown.";
        CONTEXT_OVER_BUDGET = "context.over_budget", "The conversation no longer fits the context budget.";
        BUDGET_EXHAUSTED = "budget.exhausted", "The task used all the tokens it may use.";
        TURN_LIMIT = "turn.limit", "The task used all the turns it may use.";
        STATE_INVALID = "state.invalid", "Recorded data is not valid or of an unknown version.";
        TEMPORAL_START_FAILED = "temporal.start_failed", "The embedded Temporal server could not be started.";
        INBOX_FULL = "inbox.full", "Too many messages wait for this task.";
    }
}

/// Every code with its one-line meaning, in the order of definition.
pub const ALL_CODES: &[(&str, &str)] = codes::LIST;

/// An error that people, peers or the model read: a code, what happened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("[{code}] {message}")]
pub struct CodedError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened and where, and what to do about it; one or two sentences, no internals.
    pub message: String,
}

impl CodedError {
    /// An error with this code and text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
