//! The server over real sockets, on both bindings, with a scripted engine behind it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail the test they help")]

mod api;
mod blocking_server;
mod card;
mod checks;
mod client;
mod client_options;
mod crowd;
mod extensions;
mod fake_engine;
mod fuzz_smoke;
mod identity;
mod issuer;
mod json_rpc;
mod limits;
mod message_replies;
mod new_tasks;
mod operators;
mod own_proof;
mod push_configs;
mod push_delivery;
mod races;
mod reading;
mod receiver;
mod rest;
mod sending;
mod server;
mod sign_in;
mod signed_tokens;
#[path = "../../src/client/sse_decoder.rs"]
mod sse_decoder;
mod streams;
mod untrusted;
mod untrusted_stream;
mod wire;
