//! The card of another agent: fetched within bounds, checked before it is used.

use a2a::AgentCard;
use bytes::Bytes;
use harness_model::{limits, parse_json_bounded};
use reqwest::{StatusCode, Url, header};

use super::{CardPolicy, ClientError, ClientOptions, card_cache::Remembered, http, lenient};
use crate::{AddressGuard, Extension};

/// How requests are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    HttpJson,
}

/// Where an agent is called, and how.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) binding: Binding,
    pub(super) url: Url,
    pub(super) tenant: Option<String>,
}

impl Endpoint {
    /// The first interface of protocol 1.x with the JSON-RPC binding, or else with HTTP+JSON.
    pub(super) fn of(card: &AgentCard, guard: Option<&AddressGuard>) -> Result<Self, ClientError> {
        let found = |name: &str, binding| {
            card.supported_interfaces.iter().find_map(|interface| {
                let version_one = interface.protocol_version.split('.').next() == Some("1");
                let matches = version_one && interface.protocol_binding.eq_ignore_ascii_case(name);
                let url = http_url(&interface.url).filter(|_| matches)?;
                let tenant = interface.tenant.clone().filter(|tenant| !tenant.is_empty());
                Some(Self { binding, url, tenant })
            })
        };
        let endpoint = found(a2a::TRANSPORT_PROTOCOL_JSONRPC, Binding::JsonRpc)
            .or_else(|| found(a2a::TRANSPORT_PROTOCOL_HTTP_JSON, Binding::HttpJson))
            .ok_or(ClientError::NoInterface)?;
        if let Some(guard) = guard {
            guard.check(endpoint.url.as_str()).map_err(ClientError::Forbidden)?;
        }
        Ok(endpoint)
    }
}

/// Fetches the card below a base URL, and checks it.
pub(super) async fn fetch(
    client: &reqwest::Client,
    base_url: &str,
    options: &ClientOptions,
) -> Result<AgentCard, ClientError> {
    let url = format!("{}/.well-known/agent-card.json", base_url.trim_end_matches('/'));
    let url = http_url(&url).ok_or_else(|| ClientError::invalid_request("the URL must be http or https"))?;
    if let Some(guard) = &options.guard {
        guard.check(url.as_str()).map_err(ClientError::Forbidden)?;
    }
    let time = options.limits.call;
    let bytes = tokio::time::timeout(time, body(client, url, options)).await;
    let bytes = bytes.map_err(|_| ClientError::TimedOut { time })??;
    let mut value =
        parse_json_bounded(&bytes, limits::JSON_DEPTH_MAX).map_err(ClientError::invalid_response)?;
    lenient::complete_card(&mut value);
    let card: AgentCard = serde_json::from_value(value).map_err(ClientError::invalid_response)?;
    check(&card, options.policy)?;
    Ok(card)
}

/// The card's bytes: from the agent, or from the cache when the agent says that they are the same.
async fn body(client: &reqwest::Client, url: Url, options: &ClientOptions) -> Result<Bytes, ClientError> {
    let bytes_max = options.limits.card_bytes_max;
    // Agents may show different cards to different callers.
    let name = format!("{url} {:?}", options.participant);
    let known = options.cards.as_ref().and_then(|cards| cards.get(&name));
    let mut request = client.get(url).headers(options.headers.clone()).header("a2a-version", a2a::VERSION);
    if let Some(known) = &known {
        request = request.header(header::IF_NONE_MATCH, &known.etag);
    }
    let response = request.send().await.map_err(ClientError::unreachable)?;
    if let Some(known) = known
        && response.status() == StatusCode::NOT_MODIFIED
    {
        return Ok(known.body);
    }
    let response = http::accepted(response, bytes_max).await?;
    let etag = response.headers().get(header::ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = http::read_capped(response, bytes_max).await?;
    if let (Some(cards), Some(etag)) = (&options.cards, etag) {
        cards.put(Remembered { url: name, etag, body: body.clone() });
    }
    Ok(body)
}

fn check(card: &AgentCard, policy: CardPolicy) -> Result<(), ClientError> {
    let declared = card.capabilities.extensions.iter().flatten();
    let mut required = declared.filter(|extension| extension.required == Some(true));
    if let Some(unknown) = required.find(|extension| Extension::of_uri(&extension.uri).is_none()) {
        return Err(ClientError::UnsupportedExtension { uri: unknown.uri.clone() });
    }
    let schemes = card.security_schemes.as_ref().is_some_and(|schemes| !schemes.is_empty());
    let requirements = card.security_requirements.as_ref().is_some_and(|list| !list.is_empty());
    match policy {
        CardPolicy::Strict if schemes || requirements => Err(ClientError::SecurityRequired),
        CardPolicy::Strict | CardPolicy::KnownExtensions => Ok(()),
    }
}

/// Extensions that the card declares and this client knows, in this client's order.
pub(super) fn known_extensions(card: &AgentCard) -> Vec<&'static str> {
    let declares =
        |uri: &str| card.capabilities.extensions.iter().flatten().any(|declared| declared.uri == uri);
    Extension::ALL.map(Extension::uri).into_iter().filter(|uri| declares(uri)).collect()
}

fn http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}
