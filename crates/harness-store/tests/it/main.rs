//! The store's tests: the suite of the port, and what is each one's own.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod commits;
mod conformance;
mod file;
mod follow;
mod home;
#[cfg(feature = "postgres")]
mod postgres;
