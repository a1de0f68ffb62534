//! The streamable HTTP transport: the MCP library's worker with our client, limits and no healing of its own.

use std::{collections::BTreeMap, str::FromStr as _, sync::Arc, time::Duration};

use harness_model::limits;
use http::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use rmcp::transport::{
    DynamicTransportError,
    common::client_side_sse::SseRetryPolicy,
    streamable_http_client::{
        StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
    },
};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests of one session in progress; further ones wait.
const REQUESTS_MAX: usize = 64;
/// Attempts to open a broken event stream again.
const STREAM_RETRIES_MAX: usize = 5;

/// A transport for the endpoint. Nothing is sent yet. The error says what is wrong with the configuration.
pub(crate) fn open(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let parsed = Url::parse(url).map_err(|_| "its URL is not valid".to_owned())?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("its URL is neither http nor https".to_owned());
    }
    let custom_headers = headers
        .iter()
        .map(|(name, value)| match (HeaderName::from_str(name), HeaderValue::from_str(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                Ok((name, value))
            }
            (Err(_), _) | (_, Err(_)) => Err(format!("its header {name:?} is not valid")),
        })
        .collect::<Result<_, String>>()?;

    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom_headers)
        .max_concurrent_requests(REQUESTS_MAX)
        .max_sse_event_size(limits::TOOL_RESULT_BYTES_MAX)
        .max_json_response_size(limits::TOOL_RESULT_BYTES_MAX)
        // The library would repeat every request after a 404, whatever the tool.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(FewRetries);
    Ok(StreamableHttpClientTransport::with_client(client_for(&parsed)?, config))
}

fn client_for(url: &Url) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another part of the program may have won the race; any provider will do.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
    let mut builder = Client::builder().redirect(redirect::Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    if url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]")) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|_| "its HTTP client cannot be set up".to_owned())
}

#[derive(Debug)]
struct FewRetries;

impl SseRetryPolicy for FewRetries {
    fn retry(&self, done: usize) -> Option<Duration> {
        (done < STREAM_RETRIES_MAX).then(|| Duration::from_millis(200).saturating_mul(1 << done.min(8)))
    }
}

/// What a failed request means for the call it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpFault {
    /// The server does not know the session any more; it did not run the call.
    Expired,
    /// The server was not reached, or turned the request away before running it.
    NotSent,
    /// The server wants credentials, or others.
    Unauthorized,
    /// The server ran the call and answered with more than the harness reads.
    TooLarge,
    /// The request was sent, and no answer can be made of what came.
    Unknown,
}

/// Classifies the error of a transport; `None` when it is not one of an HTTP transport.
pub(crate) fn fault_of(error: &DynamicTransportError) -> Option<HttpFault> {
    let error = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>()?;
    Some(if matches!(error, StreamableHttpError::SessionExpired) {
        HttpFault::Expired
    } else if let StreamableHttpError::Client(error) = error {
        if never_connected(error) { HttpFault::NotSent } else { HttpFault::Unknown }
    } else if let StreamableHttpError::HttpStatus(status) = error {
        if status.status == 429 { HttpFault::NotSent } else { HttpFault::Unknown }
    } else if matches!(
        error,
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)
    ) {
        HttpFault::Unauthorized
    } else if matches!(error, StreamableHttpError::ResponseBodyTooLarge { .. }) {
        HttpFault::TooLarge
    } else if matches!(error, StreamableHttpError::ReservedHeaderConflict(_)) {
        HttpFault::NotSent
    } else {
        HttpFault::Unknown
    })
}

fn never_connected(error: &reqwest::Error) -> bool {
    error.is_connect() || error.is_builder()
}

/// In words for people, from the kind of the error and never from its text, which may hold the URL.
pub(crate) fn describe(error: &DynamicTransportError) -> &'static str {
    match fault_of(error) {
        Some(HttpFault::Expired) => "does not know its session",
        Some(HttpFault::NotSent) => "cannot be reached, or turns requests away",
        Some(HttpFault::Unauthorized) => "asks for authorization",
        Some(HttpFault::TooLarge) => "answers with more than the harness reads",
        Some(HttpFault::Unknown) => "does not answer as an MCP server does",
        None => "closed its input before it greeted",
    }
}
