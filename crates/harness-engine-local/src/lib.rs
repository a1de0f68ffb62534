//! The embedded engine: hosts workflows durably over a store, in this process.
//!
//! A workflow that has something to do is driven by one *actor*, a future that takes what is queued for the workflow,
//! applies it, commits everything it caused in one batch, performs the commands, and ends when nothing is left. Between
//! two things to do there is no future, only a few warm states in memory; everything else is rows in the store.
//!
//! The engine knows nothing of agents: it sees [`harness_ports::Workflow`]s, [`harness_ports::ActivityHost`] and a
//! [`harness_ports::Store`].

mod activity_runner;
mod actor;
mod batch;
mod context;
mod engine;
mod hosted;
mod input;
mod instance;
mod options;
mod outbox;
mod recovery;
mod registry;
mod timer_service;

pub use engine::{EngineParts, LocalEngine};
pub use options::EngineOptions;
