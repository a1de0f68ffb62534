//! Why something that is asked of a Temporal server, apart from running workflows, is not done.

use harness_model::{ErrorCode, codes};
use temporalio_client::tonic::Status;

use crate::ConnectError;

/// Why a schedule, a registration or an inspection did not come about.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server refuses.
    #[error("the Temporal server did not {what}: {reason}")]
    Refused {
        /// What it was asked to do.
        what: &'static str,
        /// What it says.
        reason: String,
    },
}

impl AdminError {
    /// The stable code for people.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Connect(error) => error.code(),
            Self::Refused { .. } => codes::HARNESS_ERROR,
        }
    }

    pub(crate) fn refused(what: &'static str, status: &Status) -> Self {
        Self::Refused { what, reason: format!("{:?}: {}", status.code(), status.message()) }
    }
}
