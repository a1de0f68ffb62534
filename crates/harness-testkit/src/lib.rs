//! What tests need and products do not: stores in memory, faults, a real model, a real database server, programs as
//! real processes.

mod local_model;
mod memory_store;
mod postgres_server;
mod process;

pub use local_model::{LocalModel, LocalModelKind};
pub use memory_store::{Fault, FaultStore, MemoryStore};
pub use postgres_server::PostgresServer;
pub use process::{Ended, Process, Program};
