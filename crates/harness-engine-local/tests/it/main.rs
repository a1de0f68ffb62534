//! The local engine: the conformance suite over three stores, and what only this engine promises.

mod lab;
mod limits;
mod memory;
mod postgres;
mod sqlite;
