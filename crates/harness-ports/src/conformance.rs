//! Conformance suites, one for each port that has several implementations.

pub mod engine;
pub mod store;
