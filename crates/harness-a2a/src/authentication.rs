//! Signing in: optional security schemes that name who asks. Without one, identity is asserted and a perimeter must
//! authenticate.

mod jwt;
mod key_set;
mod verifying_key;

use std::collections::HashMap;

use a2a::{ApiKeySecurityScheme, HttpAuthSecurityScheme, SecurityRequirement};
use harness_model::{ParticipantId, Secret};
use harness_ports::{Clock, TaskGroup};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use ring::hmac;
use tracing::warn;

pub use key_set::{JwksError, JwksSource};

use crate::{A2aError, ErrorKind};
use jwt::JwtVerifier;

/// Realm of the challenges.
const REALM: &str = "a2a";

/// A way to sign in. Any one of the configured ones is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityScheme {
    /// `Authorization: Bearer TOKEN`.
    Bearer {
        /// Who has which token.
        tokens: Vec<StaticToken>,
    },
    /// The key in a header of its own.
    ApiKey {
        /// The header.
        header: HeaderName,
        /// Who has which key.
        tokens: Vec<StaticToken>,
    },
    /// `Authorization: Bearer TOKEN`, the token being a JSON Web Token that an issuer has signed with RS256, PS256,
    /// ES256 or EdDSA. It names its key, says when it expires, and has at most 8 KiB.
    Jwt {
        /// Who issues the tokens, exactly as their `iss` says.
        issuer: String,
        /// Whom the tokens are for: their `aud`, or one of several.
        audience: String,
        /// The claim that is the participant's id; usually `sub`.
        participant_claim: String,
        /// The issuer's keys.
        jwks: JwksSource,
    },
}

/// A token or key, and who has it. One participant may have several, so that they can be changed without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticToken {
    /// The token; an empty one admits nobody.
    pub secret: Secret,
    /// Who has it.
    pub participant: ParticipantId,
}

impl SecurityScheme {
    /// Its name on the card.
    fn name(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer",
            Self::ApiKey { .. } => "apiKey",
            Self::Jwt { .. } => "jwt",
        }
    }

    fn challenge(&self) -> String {
        match self {
            Self::Bearer { .. } | Self::Jwt { .. } => format!("Bearer realm=\"{REALM}\""),
            Self::ApiKey { header, .. } => format!("ApiKey realm=\"{REALM}\", header=\"{header}\""),
        }
    }

    fn on_card(&self) -> a2a::SecurityScheme {
        match self {
            Self::Bearer { .. } => a2a::SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                scheme: "Bearer".to_owned(),
                description: None,
                bearer_format: None,
            }),
            Self::ApiKey { header, .. } => a2a::SecurityScheme::ApiKey(ApiKeySecurityScheme {
                location: "header".to_owned(),
                name: header.as_str().to_owned(),
                description: None,
            }),
            Self::Jwt { .. } => a2a::SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                scheme: "Bearer".to_owned(),
                description: None,
                bearer_format: Some("JWT".to_owned()),
            }),
        }
    }

    /// The header that carries the credentials.
    pub(crate) fn header(&self) -> HeaderName {
        match self {
            Self::Bearer { .. } | Self::Jwt { .. } => AUTHORIZATION,
            Self::ApiKey { header, .. } => header.clone(),
        }
    }

    /// What a request presents for this scheme. Two values are none: nobody can tell which one counts.
    fn presented<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        let mut values = headers.get_all(self.header()).iter();
        let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
        match self {
            Self::Bearer { .. } | Self::Jwt { .. } => {
                let (scheme, token) = value.split_at_checked("Bearer ".len())?;
                scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
            }
            Self::ApiKey { .. } => Some(value),
        }
    }
}

/// Schemes as the card declares them: all of them, and that any one of them is enough.
pub(crate) fn on_card(
    schemes: &[SecurityScheme],
) -> Option<(HashMap<String, a2a::SecurityScheme>, Vec<SecurityRequirement>)> {
    let declared = schemes.iter().map(|scheme| (scheme.name().to_owned(), scheme.on_card())).collect();
    let any = schemes.iter().map(|scheme| HashMap::from([(scheme.name().to_owned(), Vec::new())]));
    (!schemes.is_empty()).then(|| (declared, any.collect()))
}

/// Checks credentials. Tokens are compared as keyed digests, each presented one with every known one, so that the time
/// says nothing about any of them.
pub(crate) struct Authentication {
    key: hmac::Key,
    schemes: Vec<(SecurityScheme, Check)>,
    challenge: HeaderValue,
}

/// What a scheme's credentials are checked against.
enum Check {
    Tokens(Vec<(hmac::Tag, ParticipantId)>),
    Jwt(JwtVerifier),
}

impl Check {
    fn new(scheme: &SecurityScheme, key: &hmac::Key) -> Self {
        match scheme {
            SecurityScheme::Bearer { tokens } | SecurityScheme::ApiKey { tokens, .. } => {
                let known = tokens.iter().filter(|token| !token.secret.reveal().is_empty());
                let digest = |known: &StaticToken| {
                    (hmac::sign(key, known.secret.reveal().as_bytes()), known.participant.clone())
                };
                Self::Tokens(known.map(digest).collect())
            }
            SecurityScheme::Jwt { issuer, audience, participant_claim, jwks } => {
                Self::Jwt(JwtVerifier::new(issuer, audience, participant_claim, jwks.clone()))
            }
        }
    }
}

impl Authentication {
    /// `None` when nobody has to sign in. The salt is secret.
    pub(crate) fn new(schemes: &[SecurityScheme], salt: &str) -> Option<Self> {
        if schemes.is_empty() {
            return None;
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, salt.as_bytes());
        let mut challenges: Vec<String> = Vec::new();
        for challenge in schemes.iter().map(SecurityScheme::challenge) {
            // Known and signed tokens travel in the same header.
            if !challenges.contains(&challenge) {
                challenges.push(challenge);
            }
        }
        // Names of headers are header values.
        let challenge = HeaderValue::from_str(&challenges.join(", "))
            .unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        let schemes = schemes.iter().map(|scheme| (scheme.clone(), Check::new(scheme, &key))).collect();
        Some(Self { key, schemes, challenge })
    }

    /// Loads the keys of every issuer and keeps them fresh in the group. Errors: see [`JwksError`].
    pub(crate) async fn follow_keys(&self, clock: &dyn Clock, group: &TaskGroup) -> Result<(), JwksError> {
        for (_, check) in &self.schemes {
            if let Check::Jwt(verifier) = check {
                verifier.follow_keys(clock.now(), group).await?;
            }
        }
        Ok(())
    }

    /// Who signs in. Errors: nothing valid is presented, or credentials of two participants.
    pub(crate) fn principal(
        &self,
        headers: &HeaderMap,
        clock: &dyn Clock,
    ) -> Result<ParticipantId, A2aError> {
        let mut found: Vec<ParticipantId> = Vec::new();
        let mut refusal = None;
        for (scheme, check) in &self.schemes {
            let Some(presented) = scheme.presented(headers) else { continue };
            match check {
                Check::Tokens(known) => {
                    let is_presented =
                        |tag: &hmac::Tag| hmac::verify(&self.key, presented, tag.as_ref()).is_ok();
                    let owners = known.iter().filter(|(tag, _)| is_presented(tag));
                    found.extend(owners.map(|(_, participant)| participant.clone()));
                }
                Check::Jwt(verifier) => match verifier.participant(presented, clock.now()) {
                    Ok(participant) => found.push(participant),
                    Err(reason) => refusal = Some(reason),
                },
            }
        }
        // With several schemes, what one refuses may be meant for another.
        if let (Some(reason), true) = (refusal, found.is_empty()) {
            warn!(%reason, "signed token refused");
        }
        found.dedup();
        match (found.pop(), found.is_empty()) {
            (Some(participant), true) => Ok(participant),
            _ => Err(unauthenticated()),
        }
    }

    /// The header that says how to sign in.
    pub(crate) fn challenge(&self) -> (HeaderName, HeaderValue) {
        (WWW_AUTHENTICATE, self.challenge.clone())
    }
}

fn unauthenticated() -> A2aError {
    A2aError::new(ErrorKind::Unauthenticated, "sign in with one of the security schemes of the agent card")
}
