//! How failures of the ports become recorded failures: what a workflow may do about them, and words for people.

use std::time::Duration;

use harness_model::{Redactor, codes, truncate_chars};
use harness_ports::{
    ActivityFailure, FailureKind, ModelError, ModelErrorKind, ModelInfo, StoreError, ToolError, ToolErrorKind,
};

/// Characters of a failure's text.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Recorded data that this build cannot read.
pub(crate) fn state_invalid(message: &str) -> ActivityFailure {
    ActivityFailure::fatal(codes::STATE_INVALID, truncate_chars(message, MESSAGE_CHARS_MAX))
}

/// A store that did not do what it was asked. What it says is for the log; people get the gist.
pub(crate) fn of_store(error: &StoreError) -> ActivityFailure {
    tracing::warn!(code = %error.code(), error = %chain(error), "the store refused an activity");
    let message = "the store could not keep or read this; look into the log for its reason";
    match error {
        StoreError::Conflict { .. } | StoreError::Unavailable { .. } => {
            ActivityFailure::retryable(error.code(), message)
        }
        StoreError::Locked { .. } | StoreError::Corrupt { .. } => {
            ActivityFailure::fatal(error.code(), message)
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A model call that gave no answer.
pub(crate) fn of_model(error: &ModelError, info: &ModelInfo, redactor: &Redactor) -> ActivityFailure {
    let mut facts = Vec::new();
    facts.extend(error.status.map(|status| format!("status {status}")));
    facts.extend(error.request_id.as_ref().map(|id| format!("request {id}")));
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    let text = redactor.text(&format!("{}{facts}", error.message));
    // The advice is what a reader needs most, so it is the detail that is cut.
    let advice = advice(&error.kind, info);
    let room = MESSAGE_CHARS_MAX.saturating_sub(advice.chars().count() + 2);
    ActivityFailure {
        code: error.code(),
        message: format!("{}; {advice}", truncate_chars(&text, room)),
        kind: model_failure_kind(&error.kind),
    }
}

fn model_failure_kind(kind: &ModelErrorKind) -> FailureKind {
    match kind {
        ModelErrorKind::Retryable { after } => FailureKind::Retryable { after_ms: after.map(millis) },
        ModelErrorKind::Empty | ModelErrorKind::Unparseable => FailureKind::Retryable { after_ms: None },
        ModelErrorKind::Quota
        | ModelErrorKind::Auth
        | ModelErrorKind::ContextOverflow
        | ModelErrorKind::InvalidRequest
        | ModelErrorKind::ScriptExhausted => FailureKind::Fatal,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn advice(kind: &ModelErrorKind, info: &ModelInfo) -> String {
    let (provider, endpoint) = (&info.provider, &info.endpoint);
    match kind {
        ModelErrorKind::Retryable { .. } => {
            format!("see whether {endpoint} is reachable and not overloaded, then send the message again")
        }
        ModelErrorKind::Quota => {
            format!("add quota to the account of provider {provider}, or choose another model")
        }
        ModelErrorKind::Auth => format!("check the key of provider {provider}"),
        ModelErrorKind::ContextOverflow => {
            "lower context.turn_budget_tokens below the window of the model, or start a new task".to_owned()
        }
        ModelErrorKind::InvalidRequest => {
            format!("check the model and the effort configured for provider {provider}")
        }
        ModelErrorKind::Unparseable => {
            format!("check that {endpoint} speaks the configured API ({})", info.api)
        }
        ModelErrorKind::Empty => "ask again in other words, or choose another model".to_owned(),
        ModelErrorKind::ScriptExhausted => format!("add a turn for this message to {endpoint}"),
    }
}

/// A tool call that gave no result.
pub(crate) fn of_tool(error: &ToolError, redactor: &Redactor) -> ActivityFailure {
    let message = truncate_chars(&redactor.text(&error.message), MESSAGE_CHARS_MAX);
    let kind = match error.kind {
        ToolErrorKind::NotSent => FailureKind::Retryable { after_ms: None },
        ToolErrorKind::OutcomeUnknown => FailureKind::OutcomeUnknown,
        ToolErrorKind::Unusable
        | ToolErrorKind::NotFound
        | ToolErrorKind::Refused
        | ToolErrorKind::DefinitionChanged => FailureKind::Fatal,
        ToolErrorKind::Canceled => FailureKind::Canceled,
    };
    ActivityFailure { code: error.code(), message, kind }
}

#[cfg(test)]
mod tests {
    use harness_model::Secret;

    use super::*;

    fn info() -> ModelInfo {
        ModelInfo {
            provider: "main".to_owned(),
            model: "m".to_owned(),
            context_window_tokens: 1_000,
            endpoint: "https://llm.example".to_owned(),
            api: "chat_completions",
        }
    }

    #[test]
    fn a_model_failure_keeps_its_advice_and_no_secret() {
        let mut error = ModelError::new(ModelErrorKind::Auth, format!("hunter22 {}", "x".repeat(5_000)));
        error.status = Some(401);
        let failure = of_model(&error, &info(), &Redactor::new([Secret::new("hunter22")]));
        assert_eq!(failure.kind, FailureKind::Fatal);
        assert_eq!(failure.code, codes::PROVIDER_AUTH);
        assert!(failure.message.chars().count() <= MESSAGE_CHARS_MAX);
        assert!(failure.message.starts_with("[REDACTED] "), "{}", failure.message);
        assert!(failure.message.ends_with("; check the key of provider main"));
    }

    #[test]
    fn each_kind_of_model_error_is_retried_or_not() {
        let kind = |kind| of_model(&ModelError::new(kind, "m"), &info(), &Redactor::default()).kind;
        let after = Some(Duration::from_millis(1_500));
        assert_eq!(
            kind(ModelErrorKind::Retryable { after }),
            FailureKind::Retryable { after_ms: Some(1_500) }
        );
        for retried in [ModelErrorKind::Empty, ModelErrorKind::Unparseable] {
            assert_eq!(kind(retried), FailureKind::Retryable { after_ms: None });
        }
        for fatal in [
            ModelErrorKind::Quota,
            ModelErrorKind::ContextOverflow,
            ModelErrorKind::InvalidRequest,
            ModelErrorKind::ScriptExhausted,
        ] {
            assert_eq!(kind(fatal), FailureKind::Fatal);
        }
    }

    #[test]
    fn a_store_failure_tells_people_no_internals() {
        let error = StoreError::Unavailable { what: "INSERT INTO blocks".to_owned(), source: None };
        let failure = of_store(&error);
        assert_eq!(failure.kind, FailureKind::Retryable { after_ms: None });
        assert!(!failure.message.contains("INSERT"));
        let error = StoreError::Locked { path: "/var/lib/x.db".to_owned() };
        assert_eq!(of_store(&error).kind, FailureKind::Fatal);
    }
}
