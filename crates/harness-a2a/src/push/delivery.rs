//! One delivery: one POST to a receiver.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use harness_model::{one_line, truncate_chars};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

use super::stored_config::{Secrets, StoredConfig};
use crate::AddressGuard;

/// Time for a delivery, from the look-up of the name to the status.
const TIME: Duration = Duration::from_secs(10);
/// Headers of the token: the first is what the official Python and JavaScript receivers read, the second the Go one.
const TOKEN_HEADERS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];
/// Header with the position of the event in the task's log, so that receivers recognise repetitions.
const SEQ_HEADER: &str = "x-tiny-harness-event-seq";
/// Characters of a failure that are kept.
const FAILURE_CHARS_MAX: usize = 300;

/// How a delivery failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undelivered {
    /// Another try may succeed.
    Retry(String),
    /// The receiver says that it is gone for good, or nothing can ever be sent to it.
    Never(String),
}

/// Sends a body. The receiver has it when its status is success.
pub(super) async fn deliver(
    http: &reqwest::Client,
    guard: &AddressGuard,
    config: &StoredConfig,
    secrets: &Secrets,
    (seq, body): (u64, Bytes),
) -> Result<(), Undelivered> {
    // What is allowed may have changed since the configuration was made.
    let url =
        guard.check(&config.url).map_err(|e| Undelivered::Never(format!("the URL is forbidden: {e}")))?;
    let headers = headers(config, secrets, seq);
    let headers = headers.ok_or_else(|| Undelivered::Never("a secret is no header value".to_owned()))?;
    let sent = http.post(url).headers(headers).body(body).timeout(TIME).send().await;
    let status = match sent {
        Ok(response) => response.status(),
        Err(error) => return Err(Undelivered::Retry(describe(&error))),
    };
    match status.as_u16() {
        200..=299 => Ok(()),
        410 => Err(Undelivered::Never("the receiver answered with HTTP status 410".to_owned())),
        other => Err(Undelivered::Retry(format!("the receiver answered with HTTP status {other}"))),
    }
}

fn headers(config: &StoredConfig, secrets: &Secrets, seq: u64) -> Option<HeaderMap> {
    let sensitive = |text: &str| {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/a2a+json"));
    headers.insert("a2a-version", HeaderValue::from_static(a2a::VERSION));
    headers.insert(SEQ_HEADER, HeaderValue::from(seq));
    if let Some(token) = secrets.token() {
        for name in TOKEN_HEADERS {
            headers.insert(name, sensitive(token.reveal())?);
        }
    }
    if let Some(scheme) = &config.scheme {
        let value = match &secrets.credentials {
            Some(credentials) => format!("{scheme} {credentials}"),
            None => scheme.clone(),
        };
        headers.insert(AUTHORIZATION, sensitive(&value)?);
    }
    Some(headers)
}

/// What went wrong with its causes, without the URL, which may hold a secret.
fn describe(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        format!("no answer within {} s", TIME.as_secs())
    } else if error.is_connect() {
        "no connection".to_owned()
    } else {
        "the connection broke".to_owned()
    };
    let mut text = what;
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    truncate_chars(&one_line(&text), FAILURE_CHARS_MAX)
}
