//! What tests need and products do not: stores in memory, faults, a real model, a real database server, a real Temporal
//! server, programs as real processes.

mod local_model;
mod memory_store;
mod postgres_server;
mod process;
mod temporal_server;
mod tools;

pub use local_model::{LocalModel, LocalModelKind};
pub use memory_store::{Fault, FaultStore, MemoryStore};
pub use postgres_server::PostgresServer;
pub use process::{Ended, Process, Program};
pub use temporal_server::{TemporalServer, temporal_binary};
