//! Signed tokens of an issuer: JSON Web Tokens in compact form. Sources: RFC 7515, RFC 7519, and the advice of RFC 8725.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use harness_model::{ParticipantId, Timestamp, truncate_chars};
use harness_ports::TaskGroup;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    key_set::{JwksError, JwksSource, KeySet, Wanted},
    verifying_key::{Algorithm, VerifyingKey},
};
use crate::access::is_id;

/// Bytes of a token; longer ones are refused before anything is read.
const TOKEN_BYTES_MAX: usize = 8 << 10;
/// How far the clocks of the issuer and of this machine may differ.
const LEEWAY_SECS: f64 = 60.0;
/// Media types of tokens that say who calls. Other tokens of an issuer, such as those that end a session, are no
/// credentials though they may have the same audience.
const TYPES: [&str; 2] = ["jwt", "at+jwt"];
/// Characters of a token's key id in the log.
const LOGGED_CHARS_MAX: usize = 100;

/// Why a token is no credential. For the log only: callers learn that they have to sign in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("the token is longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    #[error("this is no signed token in compact form")]
    Malformed,
    #[error("the header asks for an extension, or is of another type of token")]
    Header,
    #[error("the algorithm is not one of RS256, PS256, ES256 and EdDSA")]
    Algorithm,
    #[error("the token names no key")]
    NoKeyId,
    #[error("the issuer has no key {kid:?} for this algorithm")]
    UnknownKey { kid: String },
    #[error("the signature does not verify")]
    Signature,
    #[error("the token has expired, or does not say when it does")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the claim of the participant is missing or no participant id")]
    Participant,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// Checks the tokens of one issuer.
pub(super) struct JwtVerifier {
    issuer: String,
    audience: String,
    participant_claim: String,
    keys: Arc<KeySet>,
}

impl JwtVerifier {
    pub(super) fn new(issuer: &str, audience: &str, participant_claim: &str, jwks: JwksSource) -> Self {
        Self {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            participant_claim: participant_claim.to_owned(),
            keys: Arc::new(KeySet::new(jwks)),
        }
    }

    /// Loads the keys and keeps them fresh in the group.
    pub(super) async fn follow_keys(&self, now: Timestamp, group: &TaskGroup) -> Result<(), JwksError> {
        self.keys.follow(now, group).await
    }

    /// Whom a token names. A key that is not known is asked for in the background.
    pub(super) fn participant(&self, token: &[u8], now: Timestamp) -> Result<ParticipantId, Refusal> {
        let claims = verified_claims(token, &self.keys.keys());
        match &claims {
            Ok(_) => self.keys.refresh(now, Wanted::Known),
            Err(Refusal::UnknownKey { .. }) => self.keys.refresh(now, Wanted::Unknown),
            Err(_) => {}
        }
        self.check(&claims?, now)
    }

    fn check(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<ParticipantId, Refusal> {
        // NumericDate is in seconds and may have a fraction. Source: RFC 7519 section 2.
        let now = now.as_millis() as f64 / 1_000.0;
        let expires = claims.get("exp").and_then(Value::as_f64).ok_or(Refusal::Expired)?;
        if now >= expires + LEEWAY_SECS {
            return Err(Refusal::Expired);
        }
        if let Some(begin) = claims.get("nbf")
            && !begin.as_f64().is_some_and(|begin| begin <= now + LEEWAY_SECS)
        {
            return Err(Refusal::NotYetValid);
        }
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(Refusal::Issuer);
        }
        let is_ours = |audience: &Value| audience.as_str() == Some(&self.audience);
        if !claims.get("aud").is_some_and(|aud| match aud.as_array() {
            Some(list) => list.iter().any(is_ours),
            None => is_ours(aud),
        }) {
            return Err(Refusal::Audience);
        }
        let participant = claims.get(&self.participant_claim).and_then(Value::as_str);
        participant.filter(|id| is_id(id)).map(ParticipantId::from).ok_or(Refusal::Participant)
    }
}

/// The claims of a token that one of the keys has signed. Nothing of a token is believed before.
fn verified_claims(token: &[u8], keys: &[VerifyingKey]) -> Result<Map<String, Value>, Refusal> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Refusal::TooLong);
    }
    let mut parts = token.split(|byte| *byte == b'.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Refusal::Malformed);
    };
    let signed = token.get(..header.len() + 1 + claims.len()).unwrap_or_default();
    let header: Header = json(header)?;
    if header.crit.is_some() || !header.typ.as_deref().is_none_or(is_credential) {
        return Err(Refusal::Header);
    }
    let algorithm = Algorithm::named(&header.alg).ok_or(Refusal::Algorithm)?;
    let kid = header.kid.ok_or(Refusal::NoKeyId)?;
    let key = keys.iter().find(|key| key.is_for(&kid, algorithm));
    let unknown = || Refusal::UnknownKey { kid: truncate_chars(&kid, LOGGED_CHARS_MAX) };
    let key = key.ok_or_else(unknown)?;
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refusal::Malformed)?;
    if !key.verifies(algorithm, signed, &signature) {
        return Err(Refusal::Signature);
    }
    json(claims)
}

fn is_credential(typ: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    TYPES.contains(&typ.strip_prefix("application/").unwrap_or(&typ))
}

fn json<T: DeserializeOwned>(part: &[u8]) -> Result<T, Refusal> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn checked(claims: Value) -> Result<ParticipantId, Refusal> {
        let jwks = JwksSource::File("unused".into());
        let verifier = JwtVerifier::new("https://issuer.example", "agent", "sub", jwks);
        let mut all = json!({"iss": "https://issuer.example", "aud": "agent", "sub": "ada", "exp": NOW + 1});
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        verifier.check(all.as_object().unwrap(), Timestamp::from_millis(NOW * 1_000))
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let good = [
            json!({"exp": NOW - 59}),
            json!({"nbf": NOW + 60}),
            json!({"exp": NOW as f64 - 59.5}),
            json!({}),
        ];
        for claims in good {
            assert_eq!(checked(claims.clone()), Ok(ParticipantId::from("ada")), "{claims}");
        }
        let bad = [
            (json!({"exp": NOW - 60}), Refusal::Expired),
            (json!({"exp": null}), Refusal::Expired),
            (json!({"exp": "2099"}), Refusal::Expired),
            (json!({"nbf": NOW + 61}), Refusal::NotYetValid),
            (json!({"nbf": "now"}), Refusal::NotYetValid),
            (json!({"nbf": null}), Refusal::NotYetValid),
        ];
        for (claims, refusal) in bad {
            assert_eq!(checked(claims.clone()), Err(refusal), "{claims}");
        }
    }

    #[test]
    fn only_tokens_that_say_who_calls_count() {
        for (typ, counts) in [
            ("JWT", true),
            ("at+jwt", true),
            ("application/at+JWT", true),
            ("logout+jwt", false),
            ("", false),
        ] {
            assert_eq!(is_credential(typ), counts, "{typ}");
        }
    }
}
