//! Owns a Temporal development server as a child process: finds the program, starts it on loopback, keeps its state
//! private, notices when it dies, and sees to it that it never outlives its owner.
//!
//! Knows nothing of Temporal's SDK: whoever needs a server gets an address.

mod binary;
mod child;
mod error;
mod fetch;
mod health;
mod identity;
mod listeners;
mod log;
mod options;
mod server;
mod state;

pub use binary::{BinarySource, default_download_dir};
pub use error::{BinaryError, StartError, StartFailure};
pub use fetch::PINNED_VERSION;
pub use log::LogTo;
pub use options::{SearchAttributeKind, ServerOptions, State};
pub use server::{DevServer, Died};
