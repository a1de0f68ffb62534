//! Proof that a request comes from this very agent. It alone may assert its own id, and is not limited in rate.
//!
//! A request of the agent to itself carries a header with the time, the digest of the body and a tag over both, over the
//! agent's base URL, the method and the target. Only whoever has the push key can make one, another agent cannot use one
//! that it is shown, and a copied one is good for the same request only, for a few minutes.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use harness_model::{BlockId, Timestamp};
use http::{HeaderMap, HeaderValue};

use crate::PushKey;

/// Header that carries the proof.
pub const OWN_PROOF_HEADER: &str = "x-tiny-harness-proof";
/// Form of the header's value.
const VERSION: &str = "v1";
/// How far the clocks of the sides may differ, and how long a proof is good.
const FRESH: Duration = Duration::from_secs(300);

/// What a proof is about.
#[derive(Clone, Copy, Debug)]
pub struct OwnRequest<'a> {
    /// Base URL of the agent, as it is configured; a trailing slash makes no difference.
    pub base_url: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// Path and query as the server sees them. Whatever stands between must not rewrite them.
    pub target: &'a str,
}

impl PushKey {
    /// The value of [`OWN_PROOF_HEADER`] for a request with this body.
    pub fn own_proof(&self, request: OwnRequest<'_>, body: &[u8], now: Timestamp) -> HeaderValue {
        let claim = Claim { at: now, digest: BlockId::of(body), tag: Vec::new() };
        let tag = BASE64_URL_SAFE_NO_PAD.encode(self.tag(&claim.text(request)));
        let value = format!("{VERSION};{};{};{tag}", now.as_millis(), claim.digest);
        // Digits, hex and base64 are always a header value.
        let mut value = HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

/// What a header claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    at: Timestamp,
    digest: BlockId,
    tag: Vec<u8>,
}

impl Claim {
    /// The claim of a request, if it carries one that can be read.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get(OWN_PROOF_HEADER)?.to_str().ok()?.split(';');
        let (version, at, digest, tag) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if version != VERSION || fields.next().is_some() {
            return None;
        }
        Some(Self {
            at: Timestamp::from_millis(at.parse().ok()?),
            digest: BlockId::parse(digest)?,
            tag: BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?,
        })
    }

    /// Whether the claim was made with the key, for this request, not long ago. The body is not looked at.
    pub(crate) fn holds(&self, key: &PushKey, request: OwnRequest<'_>, now: Timestamp) -> bool {
        now.since(self.at).max(self.at.since(now)) <= FRESH && key.has_tag(&self.text(request), &self.tag)
    }

    /// Whether the claim is about this body.
    pub(crate) fn covers(&self, body: &[u8]) -> bool {
        BlockId::of(body) == self.digest
    }

    fn text(&self, request: OwnRequest<'_>) -> String {
        let OwnRequest { base_url, method, target } = request;
        let base_url = base_url.trim_end_matches('/');
        format!("{VERSION}\n{base_url}\n{method}\n{target}\n{}\n{}", self.at.as_millis(), self.digest)
    }
}

/// Marks a request whose claim holds and covers its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proven;

#[cfg(test)]
mod tests {
    use harness_model::Secret;

    use super::*;

    fn key(text: &str) -> PushKey {
        PushKey::from_base64(&Secret::new(text)).unwrap()
    }

    #[test]
    fn a_claim_holds_for_its_request_only() {
        let own = key("AAAAAAAAAAAAAAAAAAAAAA==");
        let now = Timestamp::from_millis(1_709_210_096_789);
        let request = OwnRequest { base_url: "http://here/", method: "POST", target: "/?x=1" };
        let mut headers = HeaderMap::new();
        headers.insert(OWN_PROOF_HEADER, own.own_proof(request, b"{}", now));
        let claim = Claim::of(&headers).unwrap();
        let holds = |request, at| claim.holds(&own, request, at);
        assert!(holds(OwnRequest { base_url: "http://here", ..request }, now));
        assert!(holds(request, now.plus(FRESH)) && claim.covers(b"{}") && !claim.covers(b"{} "));
        let late = now.plus(FRESH + Duration::from_millis(1));
        assert!(!holds(request, late) && !holds(request, Timestamp::from_millis(0)));
        for other in [
            OwnRequest { base_url: "http://there", ..request },
            OwnRequest { method: "GET", ..request },
            OwnRequest { target: "/", ..request },
        ] {
            assert!(!holds(other, now), "{other:?}");
        }
        assert!(!claim.holds(&key("AQEBAQEBAQEBAQEBAQEBAQ=="), request, now));
    }

    #[test]
    fn headers_that_are_no_claim_are_none() {
        let digest = BlockId::of(b"");
        for wrong in ["", "v1", "v2;1;x;y", &format!("v1;x;{digest};AA"), &format!("v1;1;{digest};AA;")] {
            let mut headers = HeaderMap::new();
            headers.insert(OWN_PROOF_HEADER, HeaderValue::from_str(wrong).unwrap());
            assert_eq!(Claim::of(&headers), None, "{wrong}");
        }
    }
}
