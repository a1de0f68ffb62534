//! How a client is to behave.

use std::{fmt, sync::Arc, time::Duration};

use ::http::{HeaderMap, HeaderName, HeaderValue};
use harness_model::ParticipantId;
use harness_ports::Clock;
use reqwest::Url;

use super::CardCache;
use crate::{AddressGuard, OWN_PROOF_HEADER, OwnRequest, PushKey};

/// Bounds of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Time to connect.
    pub connect: Duration,
    /// Time for a whole call that does not wait for an agent's turn.
    pub call: Duration,
    /// Time for a blocking send, which waits for an agent's turn.
    pub send: Duration,
    /// Time without a byte on a stream; agents send comments more often than that.
    pub idle: Duration,
    /// Bytes of an agent card.
    pub card_bytes_max: usize,
    /// Bytes of any other response.
    pub response_bytes_max: usize,
    /// Bytes of one event of a stream.
    pub event_bytes_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(60),
            send: Duration::from_secs(600),
            idle: Duration::from_secs(90),
            card_bytes_max: 256 << 10,
            response_bytes_max: 16 << 20,
            event_bytes_max: 4 << 20,
        }
    }
}

/// Which cards are refused before anything is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardPolicy {
    /// Cards that require an extension this client does not know: such an agent would refuse every call.
    #[default]
    KnownExtensions,
    /// Those, and cards that declare a security scheme or requirement: the harness has no credentials to give away.
    Strict,
}

/// What a client is made with.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Who asks: asserted in a header, and in the metadata of messages that assert nobody.
    pub participant: Option<ParticipantId>,
    /// The bounds.
    pub limits: ClientLimits,
    /// Which cards are refused.
    pub policy: CardPolicy,
    /// Further headers of every request, credentials for example.
    pub headers: HeaderMap,
    /// Which addresses may be called, for agents that somebody else named. `None`: any address.
    pub guard: Option<AddressGuard>,
    /// Where cards are remembered.
    pub cards: Option<CardCache>,
    /// Proves that requests are this agent's own, for calls of the agent to itself.
    pub own_requests: Option<OwnRequests>,
}

/// Proves the requests of an agent to itself. To any other agent a proof says nothing.
#[derive(Clone)]
pub struct OwnRequests {
    /// The agent's push key.
    pub key: PushKey,
    /// The agent's base URL, as it is configured.
    pub base_url: String,
    /// When a request is made.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for OwnRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnRequests").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

impl OwnRequests {
    /// The header for a request.
    pub(super) fn proof(&self, method: &str, url: &Url, body: &[u8]) -> (HeaderName, HeaderValue) {
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let request = OwnRequest { base_url: &self.base_url, method, target: &target };
        let value = self.key.own_proof(request, body, self.clock.now());
        (HeaderName::from_static(OWN_PROOF_HEADER), value)
    }
}
