//! What `cargo xtask conformance` consists of: the agent that is driven, the kits that drive it, and what is expected.

mod agent;
mod expectations;
mod kits;

pub(crate) use agent::Agent;
pub(crate) use expectations::{EXPECTATIONS, Expectations, Tally};
pub(crate) use kits::{KITS, Kit};
