//! Conformance suites, one for each port that has several implementations.

pub mod store;
