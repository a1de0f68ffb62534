//! What every operation checks before its own parameters: version, extensions, identity, and where a stream resumes.

use axum::{extract::Query, response::Response};
use harness_model::{TraceParent, truncate_chars};
use http::{Extensions, HeaderMap, StatusCode, Uri, header};

use super::connection::Connection;
use crate::{
    A2aError, A2aService, ErrorKind,
    access::{self, Authority},
    extension::{EXTENSIONS_HEADER, announced, negotiate},
    own_proof::Proven,
    service::Call,
};

/// The version of the protocol that is spoken here.
const VERSION: (&str, &str) = ("1", "0");
/// What a request without a version is taken for. Source: A2A 1.0 section 3.6.2.
const VERSION_WHEN_ABSENT: &str = "0.3";
/// Characters of a client's value that are repeated in an error.
const REPEATED_CHARS_MAX: usize = 200;

/// Query parameters in their order.
pub(super) type QueryPairs = Vec<(String, String)>;

/// Reads the query of a request.
pub(super) fn query(uri: &Uri) -> Result<QueryPairs, A2aError> {
    Query::<QueryPairs>::try_from_uri(uri)
        .map(|Query(pairs)| pairs)
        .map_err(|_| A2aError::invalid_params("the query of the URL cannot be read"))
}

/// The value of a query parameter, if it is there.
pub(super) fn value_of<'a>(pairs: &'a QueryPairs, name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// What stands behind a request: the first thing that is checked.
/// Errors: `Unauthenticated` when somebody has to sign in and has not.
pub(super) fn authority(
    service: &A2aService,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Authority, A2aError> {
    if extensions.get::<Proven>().is_some() {
        return Ok(Authority::Own);
    }
    match &service.inner.authentication {
        Some(authentication) => {
            authentication.principal(headers, service.inner.clock.as_ref()).map(Authority::Principal)
        }
        None => Ok(Authority::Asserted),
    }
}

/// The refusal of a request whose caller has to sign in, with the header that says how.
pub(super) fn challenge(service: &A2aService, mut refusal: Response) -> Response {
    *refusal.status_mut() = StatusCode::UNAUTHORIZED;
    if let Some(authentication) = &service.inner.authentication {
        let (name, value) = authentication.challenge();
        refusal.headers_mut().insert(name, value);
    }
    refusal
}

/// Checks version and extensions, and reads who asks.
pub(super) fn call(
    service: &A2aService,
    headers: &HeaderMap,
    pairs: &QueryPairs,
    extensions: &Extensions,
    authority: Authority,
) -> Result<Call, A2aError> {
    check_version(headers, pairs)?;
    let activated = negotiate(headers, &service.inner.config.card.required_extensions)?;
    let stop = extensions.get::<Connection>().map(|connection| connection.stop.clone());
    Ok(Call {
        participant: access::asserted_by_header(headers)?,
        authority,
        activated,
        trace: trace_parent(headers),
        after: resume_position(headers, pairs)?,
        stop: stop.unwrap_or_default(),
    })
}

/// Where in a trace the caller is. A header that cannot be read, or more than one, is as good as none.
/// Source: W3C Trace Context, section 3.2.
fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut named = headers.get_all("traceparent").iter();
    let (only, further) = (named.next()?, named.next());
    further.is_none().then(|| TraceParent::parse(only.to_str().ok()?)).flatten()
}

/// The answer to a call, with the extensions that it goes by.
pub(super) fn announce(call: &Call, mut response: Response) -> Response {
    if let Some(value) = announced(&call.activated) {
        response.headers_mut().insert(EXTENSIONS_HEADER, value);
    }
    response
}

fn check_version(headers: &HeaderMap, pairs: &QueryPairs) -> Result<(), A2aError> {
    let named = headers.get_all("a2a-version").iter().map(|value| value.to_str().unwrap_or("?").trim());
    let mut named: Vec<&str> = named.filter(|text| !text.is_empty()).collect();
    if named.is_empty() {
        let in_query = value_of(pairs, "A2A-Version").map(str::trim).filter(|text| !text.is_empty());
        named.push(in_query.unwrap_or(VERSION_WHEN_ABSENT));
    }
    // Of several, nobody can tell which one counts.
    let Some(version) = named.into_iter().find(|version| !is_spoken(version)) else { return Ok(()) };
    let message = format!(
        "A2A version {} is not supported; send A2A-Version: 1.0",
        truncate_chars(version, REPEATED_CHARS_MAX)
    );
    Err(A2aError::new(ErrorKind::VersionNotSupported, message))
}

/// Whether a version is the one that is spoken here, with or without the number of a patch.
fn is_spoken(version: &str) -> bool {
    let mut numbers = version.split('.');
    let spoken = (numbers.next(), numbers.next()) == (Some(VERSION.0), Some(VERSION.1));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    spoken && numbers.next().is_none_or(is_number) && numbers.next().is_none()
}

/// The last event a client has seen: the header of the event-stream standard, or `?after=`.
fn resume_position(headers: &HeaderMap, pairs: &QueryPairs) -> Result<Option<u64>, A2aError> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let Some(text) = header.or(value_of(pairs, "after")).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let position = text.parse().map_err(|_| A2aError::invalid_params("Last-Event-ID must be a number"))?;
    Ok(Some(position))
}

/// Requests with a body say that it is JSON. A browser then asks the server before it sends one across origins.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), A2aError> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || essence == "application/a2a+json" {
        return Ok(());
    }
    let message = "requests must have Content-Type: application/json or application/a2a+json";
    Err(A2aError::new(ErrorKind::ContentTypeNotSupported, message))
}
