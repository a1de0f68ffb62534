//! What tests need and products do not: stores in memory, faults, a real model, programs as real processes.

mod local_model;
mod memory_store;
mod process;

pub use local_model::{LocalModel, LocalModelKind};
pub use memory_store::{Fault, FaultStore, MemoryStore};
pub use process::{Ended, Process, Program};
