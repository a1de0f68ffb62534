//! MCP: long-lived sessions that heal by themselves, a tool catalogue with a drift guard, and the demo servers.
//!
//! [`McpTools`] implements [`harness_ports::ToolSource`]. Each configured server has one owner (`server`) that connects,
//! respawns and closes; calls borrow its current session (`session`). Transports (`stdio`, `http`) bound what a server
//! can make the harness hold; everything that names the MCP library stays inside this crate.

mod catalogue;
mod config;
mod definition;
pub mod demo;
mod http;
mod restarts;
mod result;
mod server;
mod session;
mod stdio;
mod tools;
mod watched;

pub use config::{McpOptions, ServerConfig, ServerTransport, StartProblem};
pub use tools::McpTools;
