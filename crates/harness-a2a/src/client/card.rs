//! The card of another agent: fetched within bounds, checked before it is used.

use a2a::AgentCard;
use harness_model::{limits, parse_json_bounded};

use super::{ClientError, ClientLimits, http};
use crate::card::EXTENSIONS;

/// Fetches the card below a base URL.
pub(super) async fn fetch(
    client: &reqwest::Client,
    base_url: &str,
    bounds: &ClientLimits,
) -> Result<AgentCard, ClientError> {
    let url = format!("{}/.well-known/agent-card.json", base_url.trim_end_matches('/'));
    let url = http_url(&url).ok_or_else(|| ClientError::invalid_request("the URL must be http or https"))?;
    let exchange = async {
        let sent = client.get(url).header("a2a-version", a2a::VERSION).send();
        let response = http::accepted(sent.await.map_err(ClientError::unreachable)?, bounds.card_bytes_max);
        http::read_capped(response.await?, bounds.card_bytes_max).await
    };
    let time = bounds.call;
    let bytes = tokio::time::timeout(time, exchange).await.map_err(|_| ClientError::TimedOut { time })??;
    let value = parse_json_bounded(&bytes, limits::JSON_DEPTH_MAX).map_err(ClientError::invalid_response)?;
    let card: AgentCard = serde_json::from_value(value).map_err(ClientError::invalid_response)?;
    let declared = card.capabilities.extensions.iter().flatten();
    let mut required = declared.filter(|extension| extension.required == Some(true));
    match required.find(|extension| !EXTENSIONS.contains(&extension.uri.as_str())) {
        Some(extension) => Err(ClientError::UnsupportedExtension { uri: extension.uri.clone() }),
        None => Ok(card),
    }
}

/// Where the card's first JSON-RPC interface of protocol 1.x is.
pub(super) fn json_rpc_endpoint(card: &AgentCard) -> Result<reqwest::Url, ClientError> {
    let found = card.supported_interfaces.iter().find(|interface| {
        interface.protocol_binding == a2a::TRANSPORT_PROTOCOL_JSONRPC
            && interface.protocol_version.split('.').next() == Some("1")
    });
    found.and_then(|interface| http_url(&interface.url)).ok_or(ClientError::NoInterface)
}

/// Extensions that the card declares and this client knows, in this client's order.
pub(super) fn known_extensions(card: &AgentCard) -> Vec<&'static str> {
    let declares =
        |uri: &str| card.capabilities.extensions.iter().flatten().any(|declared| declared.uri == uri);
    EXTENSIONS.into_iter().filter(|uri| declares(uri)).collect()
}

fn http_url(text: &str) -> Option<reqwest::Url> {
    let url = reqwest::Url::parse(text).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}
