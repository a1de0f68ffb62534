//! Tests of the providers through their public interface, against servers that misbehave and against real bytes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]
#![expect(clippy::wildcard_enum_match_arm, reason = "what a test does not expect is one case")]

mod adverse;
mod captures;
mod cases;

mod decoders;
mod fake_server;
mod fallback;
mod limits;
mod local_model;
mod other_requests;
mod outcome;
mod prefixes;
mod recordings;
mod requests;
mod scripted;
mod wires;
