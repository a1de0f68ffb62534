//! The stores: everything the harness keeps, in one SQLite file, or on a PostgreSQL server that several hosts share.
//!
//! One thread writes ([`SqliteStore::open`] starts it): it takes every batch that waits, applies each in a savepoint of
//! one transaction, and makes all of them durable with one flush. Readers have connections of their own and see whole,
//! durable batches. New log entries go from the writer straight to those who follow a task.

mod apply;
mod block_cache;
mod connection;
mod encode;
mod error;
mod follow;
mod hub;
mod migrations;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod read;
mod readers;
mod sqlite_store;
mod writer;

pub use options::{CommitHook, CommitPhase, StoreOptions};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, PostgresTls, PostgresUse};
pub use sqlite_store::SqliteStore;
