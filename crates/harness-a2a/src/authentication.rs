//! Signing in: optional security schemes that name who asks. Without one, identity is asserted and a perimeter must
//! authenticate.

use std::collections::HashMap;

use a2a::{ApiKeySecurityScheme, HttpAuthSecurityScheme, SecurityRequirement};
use harness_model::{ParticipantId, Secret};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use ring::hmac;

use crate::{A2aError, ErrorKind};

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
        }
    }

    fn tokens(&self) -> &[StaticToken] {
        match self {
            Self::Bearer { tokens } | Self::ApiKey { tokens, .. } => tokens,
        }
    }

    fn challenge(&self) -> String {
        match self {
            Self::Bearer { .. } => format!("Bearer realm=\"{REALM}\""),
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
        }
    }

    /// What a request presents for this scheme. Two values are none: nobody can tell which one counts.
    fn presented<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        let header = match self {
            Self::Bearer { .. } => &AUTHORIZATION,
            Self::ApiKey { header, .. } => header,
        };
        let mut values = headers.get_all(header).iter();
        let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
        match self {
            Self::Bearer { .. } => {
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
    schemes: Vec<(SecurityScheme, Vec<(hmac::Tag, ParticipantId)>)>,
    challenge: HeaderValue,
}

impl Authentication {
    /// `None` when nobody has to sign in. The salt is secret.
    pub(crate) fn new(schemes: &[SecurityScheme], salt: &str) -> Option<Self> {
        if schemes.is_empty() {
            return None;
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, salt.as_bytes());
        let challenge = schemes.iter().map(SecurityScheme::challenge).collect::<Vec<_>>().join(", ");
        // Names of headers are header values.
        let challenge =
            HeaderValue::from_str(&challenge).unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
        let digests = |scheme: &SecurityScheme| {
            let known = scheme.tokens().iter().filter(|token| !token.secret.reveal().is_empty());
            known
                .map(|known| (hmac::sign(&key, known.secret.reveal().as_bytes()), known.participant.clone()))
                .collect()
        };
        let schemes = schemes.iter().map(|scheme| (scheme.clone(), digests(scheme))).collect();
        Some(Self { key, schemes, challenge })
    }

    /// Who signs in. Errors: nothing valid is presented, or credentials of two participants.
    pub(crate) fn principal(&self, headers: &HeaderMap) -> Result<ParticipantId, A2aError> {
        let mut found: Option<&ParticipantId> = None;
        for (scheme, known) in &self.schemes {
            let Some(presented) = scheme.presented(headers) else { continue };
            for (tag, participant) in known {
                if hmac::verify(&self.key, presented, tag.as_ref()).is_ok() {
                    if found.is_some_and(|other| other != participant) {
                        return Err(unauthenticated());
                    }
                    found = Some(participant);
                }
            }
        }
        found.cloned().ok_or_else(unauthenticated)
    }

    /// The header that says how to sign in.
    pub(crate) fn challenge(&self) -> (HeaderName, HeaderValue) {
        (WWW_AUTHENTICATE, self.challenge.clone())
    }
}

fn unauthenticated() -> A2aError {
    A2aError::new(ErrorKind::Unauthenticated, "sign in with one of the security schemes of the agent card")
}
