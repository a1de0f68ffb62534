//! A2A 1.0.1: the server with both HTTP bindings, the agent card, and a small client.
//!
//! The way of a request: `server` (limits, binding, version, extensions) -> `service` (identity, access, the operation)
//! -> the engine and the store -> `render` (domain values to wire types). The protocol types come from the official
//! crate and leave this one only through [`wire`].

mod access;
mod address_guard;
mod authentication;
mod card;
mod client;
mod config;
mod error;
mod extension;
mod own_proof;
mod proto_json;
mod push;
mod push_key;
mod render;
mod server;
mod service;
pub mod wire;

pub use address_guard::{AddressGuard, ForbiddenUrl, InvalidAllowedAddress};
pub use authentication::{JwksError, JwksSource, SecurityScheme, StaticToken};
pub use client::{
    AgentClient, CardCache, CardPolicy, ClientError, ClientLimits, ClientOptions, EventStream, OwnRequests,
    ResumePolicy, StreamItem, purge_task,
};
pub use config::{A2aConfig, CardConfig, CardSkill};
pub use error::{A2aError, ErrorKind};
pub use extension::Extension;
pub use own_proof::{OWN_PROOF_HEADER, OwnRequest};
pub use push::{PushError, PushRetry, receivers_behind};
pub use push_key::{InvalidPushKey, PushKey};
pub use server::{router, serve};
pub use service::A2aService;
