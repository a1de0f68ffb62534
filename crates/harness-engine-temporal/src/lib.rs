//! The engine for more than one machine: drives the workflows of a shared store with Temporal.
//!
//! [`harness_journal`] hosts them, in whichever process has an event. For each of them there is one Temporal workflow with
//! the same id. It does what the store says is left to do: it schedules announced activities, sleeps until timers are
//! due, and cancels what is no longer wanted. It knows nothing of agents and holds no content.
//!
//! Delivering a message is one commit to the store; then the Temporal workflow is woken. The commit includes a note that
//! this is to be done, so that it is done by somebody, whatever dies.

mod activities;
mod admin_error;
mod asides;
mod board;
mod connection;
mod contact;
mod driver;
mod engine;
mod health;
mod heartbeat;
mod inspect;
mod labels;
mod meter;
mod options;
mod payload;
mod protocol;
mod reporter;
mod running;
mod terminate;
mod wakes;
mod worker;
mod workflow;

pub use admin_error::AdminError;
pub use connection::{Address, ConnectError, Tls};
pub use engine::{EngineParts, TemporalEngine};
pub use health::{Health, WorkerState};
pub use heartbeat::{Heartbeat, delete_heartbeat, ensure_heartbeat};
pub use inspect::{Inspection, Poller, StuckWorkflow, inspect};
pub use labels::ensure_search_attributes;
pub use options::{EngineOptions, Hands};
pub use terminate::terminate;
