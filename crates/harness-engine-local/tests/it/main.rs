//! The local engine: the conformance suite over two stores, and what only this engine promises.

mod lab;
mod limits;
mod memory;
mod sqlite;
