//! A2A 1.0.1: the server with both HTTP bindings, the agent card, and a small client.
//!
//! The way of a request: `server` (limits, binding, version, extensions) -> `service` (identity, access, the operation)
//! -> the engine and the store -> `render` (domain values to wire types). The protocol types come from the official
//! crate and leave this one only through [`wire`].

mod access;
mod card;
mod client;
mod config;
mod error;
mod proto_json;
mod render;
mod server;
mod service;
pub mod wire;

pub use client::{AgentClient, ClientError, ClientLimits, EventStream, StreamItem};
pub use config::{A2aConfig, CardConfig, CardSkill};
pub use error::{A2aError, ErrorKind};
pub use server::{router, serve};
pub use service::A2aService;
