//! The store on a PostgreSQL server, for several processes on several hosts that share one log.
//!
//! A batch is one transaction with a fixed number of statements, however many changes it has: it locks the workflows and
//! tasks that it is about, reads what its conditions need ([`found`]), decides in memory ([`plan`]), and writes sets of
//! rows. Batches of different tasks commit at the same time, so that the server makes many durable with one flush.
//! Followers are woken by the commits of their own process directly, and by those of others through one connection that
//! listens.

mod connect;
mod delete;
mod error;
mod feeds;
mod follow;
mod found;
mod migrations;
mod options;
mod owner;
mod plan;
mod postgres_store;
mod read;
mod save;
mod signals;
mod writer;

pub use options::{PostgresOptions, PostgresTls, PostgresUse};
pub use postgres_store::PostgresStore;
