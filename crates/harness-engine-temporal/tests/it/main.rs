//! The Temporal engine against the real dev server: the conformance suite, and what only this engine promises.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bad_input;
mod doings;
mod handover;
mod heartbeat;
mod histories;
mod lab;
mod labels;
mod memory;
mod postgres;
mod processes;
mod quick;
mod script;
mod sizes;
mod sqlite;
mod visible;
mod world;
