//! How a call to an agent fails.

use std::{error::Error, time::Duration};

use crate::{ErrorKind, ForbiddenUrl};

/// Why a call to another agent has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No answer: refused, reset, no such host, a broken stream.
    #[error("the agent cannot be reached, or the connection broke")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// No answer in time. A message may have arrived all the same.
    #[error("the agent did not answer within {time:?}")]
    TimedOut {
        /// How long the client waited.
        time: Duration,
    },
    /// An HTTP status that is not success.
    #[error("the agent answered with HTTP status {status}: {text}")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body, on one line.
        text: String,
    },
    /// The agent refused the request.
    #[error("{message} (code {code})")]
    Refused {
        /// The JSON-RPC code.
        code: i32,
        /// Which error of the protocol, when it is one.
        kind: Option<ErrorKind>,
        /// What the agent says.
        message: String,
    },
    /// The answer is larger than the client takes.
    #[error("the agent's answer is larger than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// The answer does not follow the protocol.
    #[error("the agent's answer does not follow the protocol")]
    InvalidResponse(#[source] Box<dyn Error + Send + Sync>),
    /// The request cannot be written.
    #[error("the request cannot be written")]
    InvalidRequest(#[source] Box<dyn Error + Send + Sync>),
    /// The card has no interface that this client speaks.
    #[error("the agent offers no A2A 1.0 interface over JSON-RPC or HTTP+JSON")]
    NoInterface,
    /// The agent requires an extension that this client does not know.
    #[error("the agent requires the extension {uri}, which is not supported")]
    UnsupportedExtension {
        /// Which one.
        uri: String,
    },
    /// The card declares a security scheme or requirement, and the client's policy is to give no credentials away.
    #[error("the agent wants callers to sign in, which is not supported")]
    SecurityRequired,
    /// The client's guard forbids an address.
    #[error("the agent's address may not be called")]
    Forbidden(#[source] ForbiddenUrl),
}

impl ClientError {
    pub(super) fn unreachable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unreachable(cause.into())
    }

    pub(super) fn invalid_response(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::InvalidResponse(cause.into())
    }

    pub(super) fn invalid_request(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::InvalidRequest(cause.into())
    }

    /// The error of the protocol, when the agent answered with one.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Refused { kind, .. } => *kind,
            Self::Unreachable(_)
            | Self::TimedOut { .. }
            | Self::Status { .. }
            | Self::TooLarge { .. }
            | Self::InvalidResponse(_)
            | Self::InvalidRequest(_)
            | Self::NoInterface
            | Self::UnsupportedExtension { .. }
            | Self::SecurityRequired
            | Self::Forbidden(_) => None,
        }
    }
}
