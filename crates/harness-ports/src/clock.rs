//! Time and identity as inputs.

use harness_model::Timestamp;

/// Where time comes from. Implementations never go backwards within one process.
pub trait Clock: Send + Sync {
    /// The time now, UTC.
    fn now(&self) -> Timestamp;
}

/// Where fresh identifiers come from.
pub trait IdSource: Send + Sync {
    /// A new identifier: 1 to 64 characters of `[A-Za-z0-9-]`, never returned twice, not guessable.
    fn fresh(&self) -> String;
}
