//! What went wrong, in the port's words. SQL stays in the error's source.

use harness_ports::StoreError;
use rusqlite::ErrorCode;

/// An error of the database, while doing `what`.
pub(crate) fn database(what: &'static str, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { what: format!("the database file is damaged ({what})") }
        }
        _ => StoreError::Unavailable { what: what.to_owned(), source: Some(Box::new(error)) },
    }
}

/// An error of the file system, while doing `what`.
pub(crate) fn io(what: &'static str, error: std::io::Error) -> StoreError {
    StoreError::Unavailable { what: what.to_owned(), source: Some(Box::new(error)) }
}

/// The store has been closed.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable { what: "it is closed".to_owned(), source: None }
}

/// Stored data that does not have the form it must have.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

/// A condition of a write that does not hold.
pub(crate) fn conflict(what: impl Into<String>) -> StoreError {
    StoreError::Conflict { what: what.into() }
}

/// Names what was being done when the database failed.
pub(crate) trait During<T> {
    /// Turns a database error into the port's.
    fn during(self, what: &'static str) -> Result<T, StoreError>;
}

impl<T> During<T> for rusqlite::Result<T> {
    fn during(self, what: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| database(what, error))
    }
}
