//! Tests of the MCP crate through its public interface, against real processes and a real HTTP server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod demo_servers;
mod http_server;
mod http_sessions;
mod rig;
mod stdio_calls;
mod stdio_floods;
mod stdio_sessions;
mod stdio_start;
