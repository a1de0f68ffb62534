//! The embedded engine: drives the workflows of a store in this process.
//!
//! [`harness_journal`] hosts them; this crate runs their activities as futures, fires their timers, and brings back what
//! an earlier process left unfinished. It knows nothing of agents.

mod activity_runner;
mod driver;
mod engine;
mod options;
mod recovery;
mod timer_service;

pub use engine::{EngineParts, LocalEngine};
pub use options::EngineOptions;
