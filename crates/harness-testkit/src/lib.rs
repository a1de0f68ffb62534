//! harness-testkit.

mod local_model;
mod memory_store;

pub use local_model::{LocalModel, LocalModelKind};
pub use memory_store::{Fault, FaultStore, MemoryStore};
