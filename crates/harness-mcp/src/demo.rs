//! The two MCP servers of the demo: an order book with a ledger of what was done, and a book of policies.
//!
//! They speak over the streams they are given, usually standard input and output of a process of their own, and end when
//! their input does.

mod arguments;
mod ledger;
mod orders;
mod policy;
mod serve;

use std::{fmt, path::PathBuf, sync::Arc};

use harness_ports::Clock;
pub use serve::{DemoError, serve_orders, serve_policy};

/// What the order server works with.
#[derive(Clone)]
pub struct DemoOptions {
    /// Where the ledger `orders-ledger.jsonl` is, and the file `slow-get-order` that makes `get_order` wait.
    pub data_dir: PathBuf,
    /// Dates the entries of the ledger.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for DemoOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DemoOptions").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}
