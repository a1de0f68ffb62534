//! What went wrong on the server or on the way to it, in the port's words. SQL, hosts and roles stay in the source.

use std::io;

use harness_ports::StoreError;
use sqlx::error::DatabaseError;

use crate::error;

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another transaction was in the way; the same again may do.
    Collision,
    /// The connection is gone, or is one to a server that does not write; another connection may do.
    Lost,
    /// Neither.
    Other,
}

/// Which kind of error this is.
pub(super) fn kind(error: &sqlx::Error) -> Kind {
    if let sqlx::Error::Database(database) = error {
        return kind_of_code(&code(&**database));
    }
    if is_broken(error) { Kind::Lost } else { Kind::Other }
}

/// Whether the connection is gone. One that breaks in the middle of a message looks like a fault of the protocol.
fn is_broken(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_))
}

fn kind_of_code(code: &str) -> Kind {
    match code {
        // Serialization failure, deadlock.
        "40001" | "40P01" => Kind::Collision,
        // Administrator's shutdown, crash, start; a standby that took a primary's place the wrong way round.
        "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "25P03" => Kind::Lost,
        _ if code.starts_with("08") => Kind::Lost,
        _ => Kind::Other,
    }
}

fn code(error: &dyn DatabaseError) -> String {
    error.code().map(|code| code.into_owned()).unwrap_or_default()
}

/// The port's error for one of the server, while doing `what`.
pub(super) fn server(what: &str, error: sqlx::Error) -> StoreError {
    let why = if let sqlx::Error::Database(database) = &error {
        let code = code(&**database);
        if code.starts_with("XX") {
            return error::corrupt(format!("the database is damaged ({what})"));
        }
        why_of_code(&code)
    } else if matches!(error, sqlx::Error::PoolClosed) {
        return error::closed();
    } else if matches!(error, sqlx::Error::PoolTimedOut) {
        "no connection to the PostgreSQL server was to be had in time"
    } else if is_broken(&error) {
        "the PostgreSQL server cannot be reached"
    } else if matches!(error, sqlx::Error::Tls(_) | sqlx::Error::Configuration(_)) {
        "the connection to the PostgreSQL server cannot be protected"
    } else {
        "the PostgreSQL server gave an answer that was not expected"
    };
    StoreError::Unavailable { what: format!("{why} ({what})"), source: Some(Box::new(error)) }
}

fn why_of_code(code: &str) -> &'static str {
    match code {
        "57P01" | "57P02" | "57P03" | "57P05" => "the PostgreSQL server is stopping or starting",
        "53300" => "the PostgreSQL server has no connection left",
        "53100" => "the disk of the PostgreSQL server is full",
        "25006" => "the PostgreSQL server does not take writes",
        "28000" | "28P01" => "the PostgreSQL server does not let this role in",
        "3D000" => "the database does not exist",
        "42501" => "the role lacks a privilege in the database",
        "55P03" | "57014" => "the PostgreSQL server took too long",
        _ => "the PostgreSQL server refused",
    }
}

/// Nothing came back within the time that a step may take.
pub(super) fn timed_out() -> sqlx::Error {
    sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut))
}
