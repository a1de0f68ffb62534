//! What an HTTP answer of a model provider that is not an answer means.
//!
//! Codes come first, then the status. Two conditions reach us without a code from servers in wide use; for these alone
//! the provider's wording decides (`OVERFLOW_WORDINGS`, `UNPARSEABLE_WORDINGS`).

use std::time::Duration;

use harness_model::{Redactor, Secret, clean_field, limits::JSON_DEPTH_MAX, parse_json_bounded};
use harness_ports::{ModelError, ModelErrorKind};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// Characters of an error message that people read.
const MESSAGE_CHARS_MAX: usize = 600;
/// Characters of a provider's request id.
const REQUEST_ID_CHARS_MAX: usize = 128;
/// The longest wait a provider may ask for; a longer one is cut to this.
const AFTER_MAX: Duration = Duration::from_secs(3_600);

/// How a code is understood, in the order in which one wins over another of the same answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Quota,
    Overflow,
    Auth,
    Retryable,
    Invalid,
}

/// Codes and types of error bodies, lower case. Source: the providers' public references and observed answers.
const CODES: &[(Class, &[&str])] = &[
    (
        Class::Quota,
        &[
            "insufficient_quota",
            "insufficient_balance",
            "insufficient_credits",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
        ],
    ),
    (
        Class::Overflow,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "model_context_window_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "string_above_max_length",
        ],
    ),
    (
        Class::Auth,
        &[
            "invalid_api_key",
            "authentication_error",
            "invalid_authentication",
            "permission_error",
            "permission_denied",
            "unauthenticated",
            "unauthorized",
        ],
    ),
    (
        Class::Retryable,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "resource_exhausted",
            "overloaded_error",
            "overloaded",
            "engine_overloaded",
            "server_error",
            "internal_server_error",
            "internal_error",
            "internal",
            "api_error",
            "service_unavailable",
            "unavailable",
            "timeout",
            "timeout_error",
        ],
    ),
    (
        Class::Invalid,
        &[
            "invalid_request_error",
            "invalid_argument",
            "bad_request",
            "not_found_error",
            "model_not_found",
            "content_filter",
            "content_policy_violation",
        ],
    ),
];

/// Parts of messages that say the request is larger than the context window, lower case.
const OVERFLOW_WORDINGS: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many input tokens",
    "reduce the length of the messages",
    "maximum number of tokens allowed",
];

/// Parts of messages that say the server could not read what its model wrote, lower case. It answers 500 then.
const UNPARSEABLE_WORDINGS: &[&str] = &[
    "model produced output that does not match",
    "failed to parse input at pos",
    "failed to parse tool call arguments",
];

/// What an error body says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    codes: Vec<String>,
    status: Option<u16>,
    after: Option<Duration>,
    message: String,
}

impl ErrorBody {
    /// Reads a body of any kind; what is not JSON is kept as the message.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        match parse_json_bounded(bytes, JSON_DEPTH_MAX) {
            Ok(value) => Self::of(&value),
            Err(_) => Self { message: snippet(bytes), ..Self::default() },
        }
    }

    /// Reads an error in any of the usual envelopes: `{error: {…}}`, `{error: "…"}`, `[{error: …}]`, or bare.
    pub(crate) fn of(value: &Value) -> Self {
        let outer = match value {
            Value::Array(items) => items.first().unwrap_or(value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => value,
        };
        let inner = outer.get("error").filter(|error| !error.is_null()).unwrap_or(outer);
        let codes = ["code", "type", "status"].iter().filter_map(|key| inner.get(key));
        let mut body = Self { after: after_in(inner), ..Self::default() };
        for code in codes {
            let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
            match number.and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n)) {
                Some(status) => body.status = body.status.or(Some(status)),
                None => body.codes.extend(code.as_str().map(str::to_ascii_lowercase)),
            }
        }
        let message = inner.as_str().or_else(|| inner.get("message")?.as_str());
        body.message = message.map_or_else(|| inner.to_string(), str::to_owned);
        body
    }

    /// The provider's own words, untrusted.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What the error means. `http_status` is that of the answer; an error inside a successful one goes by its own.
    pub(crate) fn classify(&self, http_status: StatusCode, headers: &HeaderMap) -> ModelErrorKind {
        let class = self.class(http_status);
        match class {
            Some(Class::Quota) => ModelErrorKind::Quota,
            Some(Class::Overflow) => ModelErrorKind::ContextOverflow,
            Some(Class::Auth) => ModelErrorKind::Auth,
            Some(Class::Invalid) => ModelErrorKind::InvalidRequest,
            Some(Class::Retryable) if self.says(UNPARSEABLE_WORDINGS) => ModelErrorKind::Unparseable,
            // Nothing known about it: most such errors pass, and the tries are counted.
            Some(Class::Retryable) | None => {
                let after = retry_after(headers).or(self.after).map(|after| after.min(AFTER_MAX));
                ModelErrorKind::Retryable { after }
            }
        }
    }

    fn class(&self, http_status: StatusCode) -> Option<Class> {
        let by_code = self.codes.iter().filter_map(|code| class_of_code(code)).min();
        if let Some(Class::Quota | Class::Overflow) = by_code {
            return by_code;
        }
        let status = if http_status.is_success() { self.status } else { Some(http_status.as_u16()) };
        let by_status = status.map(class_of_status);
        if by_status.or(by_code).is_none_or(|class| class == Class::Invalid) && self.says(OVERFLOW_WORDINGS) {
            return Some(Class::Overflow);
        }
        match by_status {
            // A code is more precise than "bad request".
            Some(Class::Invalid) => by_code.or(by_status),
            Some(Class::Quota | Class::Overflow | Class::Auth | Class::Retryable) => by_status,
            None => by_code,
        }
    }

    fn says(&self, wordings: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        wordings.iter().any(|wording| message.contains(wording))
    }
}

fn class_of_code(code: &str) -> Option<Class> {
    CODES.iter().find(|(_, codes)| codes.contains(&code)).map(|(class, _)| *class)
}

fn class_of_status(status: u16) -> Class {
    match status {
        401 | 403 => Class::Auth,
        402 => Class::Quota,
        413 => Class::Overflow,
        408 | 409 | 425 | 429 | 500.. => Class::Retryable,
        _ => Class::Invalid,
    }
}

/// The wait that headers ask for: `retry-after-ms`, or `retry-after` in seconds or as a date.
///
/// A date is measured against the answer's own `date`, so no clock of ours and no difference between clocks matters.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return seconds(millis / 1_000.0);
    }
    let value = text("retry-after")?;
    if let Ok(number) = value.parse::<f64>() {
        return seconds(number);
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(text("date")?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// The wait that a body asks for: `retry_after_ms`, `retry_after`, or `retryDelay` of one of its `details`.
fn after_in(error: &Value) -> Option<Duration> {
    if let Some(millis) = error.get("retry_after_ms").and_then(Value::as_f64) {
        return seconds(millis / 1_000.0);
    }
    if let Some(number) = error.get("retry_after").and_then(Value::as_f64) {
        return seconds(number);
    }
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?.parse().ok()?)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Builds errors that name the provider and never show its key.
#[derive(Clone, Debug)]
pub(crate) struct Failures {
    provider: String,
    redactor: Redactor,
}

impl Failures {
    /// Errors of this provider.
    pub(crate) fn new(provider: &str, key: Option<&Secret>) -> Self {
        Self { provider: provider.to_owned(), redactor: Redactor::new(key.cloned()) }
    }

    /// An error; `what` may hold the provider's words.
    pub(crate) fn error(&self, kind: ModelErrorKind, what: &str) -> ModelError {
        let text = self.redactor.text(&format!("{}: {what}", self.provider));
        ModelError::new(kind, clean_field(&text, Some(MESSAGE_CHARS_MAX)).text)
    }

    /// Something that passes: no connection, a cut stream, silence.
    pub(crate) fn retryable(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::Retryable { after: None }, what)
    }
}

/// The beginning of a body as text, for a message.
pub(crate) fn snippet(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MESSAGE_CHARS_MAX)]).into_owned()
}

/// The provider's id of a request, cleaned and bounded.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["x-request-id", "request-id", "x-ms-request-id", "x-amzn-requestid"];
    let value = names.iter().find_map(|name| headers.get(*name)?.to_str().ok())?;
    let id = clean_field(value, Some(REQUEST_ID_CHARS_MAX)).text;
    (!id.is_empty()).then_some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(status: u16, body: &Value) -> ModelErrorKind {
        ErrorBody::of(body).classify(StatusCode::from_u16(status).unwrap(), &HeaderMap::new())
    }

    fn after(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let body = ErrorBody::of(&json!({"error": {"retry_after": 9}}));
        let kind = body.classify(StatusCode::TOO_MANY_REQUESTS, &map);
        let ModelErrorKind::Retryable { after } = kind else { panic!("{kind:?}") };
        after
    }

    #[test]
    fn codes_win_over_the_status() {
        let coded =
            |code: &str| json!({"error": {"message": "m", "type": "invalid_request_error", "code": code}});
        let retryable = ModelErrorKind::Retryable { after: None };
        for (status, code, expected) in [
            (429, "insufficient_quota", ModelErrorKind::Quota),
            (429, "rate_limit_exceeded", retryable.clone()),
            (400, "context_length_exceeded", ModelErrorKind::ContextOverflow),
            (400, "invalid_api_key", ModelErrorKind::Auth),
            (400, "unheard_of", ModelErrorKind::InvalidRequest),
            (503, "unheard_of", retryable.clone()),
            (529, "invalid_request_error", retryable.clone()),
            (200, "overloaded_error", retryable.clone()),
            (200, "429", retryable.clone()),
            (200, "401", ModelErrorKind::Auth),
            (200, "unheard_of", ModelErrorKind::InvalidRequest),
        ] {
            assert_eq!(kind(status, &coded(code)), expected, "{status} {code}");
        }
    }

    #[test]
    fn every_envelope_is_read() {
        for body in [
            json!({"error": {"message": "busy", "code": 503}}),
            json!([{"error": {"message": "busy", "status": "UNAVAILABLE"}}]),
            json!({"message": "busy", "type": "overloaded_error"}),
            json!({"error": "busy"}),
        ] {
            assert_eq!(kind(200, &body), ModelErrorKind::Retryable { after: None }, "{body}");
            assert_eq!(ErrorBody::of(&body).message(), "busy");
        }
        assert_eq!(ErrorBody::parse(b"<html>").message(), "<html>");
    }

    #[test]
    fn waits_are_read_from_headers_and_body() {
        let secs = |s: f64| Some(Duration::from_secs_f64(s));
        assert_eq!(after(&[("retry-after", "7")]), secs(7.0));
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "250")]), secs(0.25));
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(after(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"), date]), secs(30.0));
        assert_eq!(after(&[("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT"), date]), secs(0.0));
        assert_eq!(after(&[("retry-after", "31536000")]), Some(AFTER_MAX));
        for nonsense in ["-3", "soon", "NaN", "1e300"] {
            assert_eq!(after(&[("retry-after", nonsense)]), secs(9.0), "{nonsense}");
        }
        let gemini = json!({"error": {"details": [{"a": 1}, {"retryDelay": "34s"}]}});
        assert_eq!(kind(429, &gemini), ModelErrorKind::Retryable { after: secs(34.0) });
    }

    #[test]
    fn messages_are_bounded_and_masked() {
        let failures = Failures::new("openai", Some(&Secret::new("top-secret-key")));
        let error = failures.retryable(&format!("top-secret-key\n\u{1b}[31m{}", "x".repeat(9_000)));
        assert!(error.message.starts_with("openai: [REDACTED] "), "{}", error.message);
        assert_eq!(error.message.chars().count(), MESSAGE_CHARS_MAX);
    }
}
