//! `tiny-harness mcp-demo`: one of the demo's tool servers, on standard input and output.

use std::sync::Arc;

use harness_mcp::demo::{DemoOptions, serve_orders, serve_policy};
use tokio::io::{stdin, stdout};

use crate::{cli::McpDemoArgs, failure::Failure, system::SystemClock};

/// Serves until the input ends.
pub(crate) async fn run(args: McpDemoArgs) -> Result<(), Failure> {
    let served = match args.server.as_str() {
        "orders" => {
            let options = DemoOptions { data_dir: args.data, clock: Arc::new(SystemClock::default()) };
            serve_orders(options, stdin(), stdout()).await
        }
        _ => serve_policy(stdin(), stdout()).await,
    };
    served.map_err(|error| Failure::general(error.to_string()))
}
