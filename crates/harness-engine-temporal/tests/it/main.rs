//! The Temporal engine against the real dev server: the conformance suite, and what only this engine promises.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod lab;
mod memory;
mod sqlite;
