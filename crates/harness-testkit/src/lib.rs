//! harness-testkit.

mod memory_store;

pub use memory_store::{Fault, FaultStore, MemoryStore};
