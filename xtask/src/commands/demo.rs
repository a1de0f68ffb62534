//! `cargo xtask demo`: builds the binary and runs its demo.

use std::os::unix::process::CommandExt;

use super::Command;
use crate::{
    process::{self, CARGO},
    session::{Failure, Outcome, Session},
};

pub(super) const COMMAND: Command = Command {
    name: "demo",
    arguments: "[arguments]",
    about: "build and run the demo; arguments go to `tiny-harness demo`",
    run,
};

fn run(session: &Session, arguments: &[String]) -> Outcome {
    // The demo runs on the local engine. A newcomer's first build is much shorter without the other one. The price: who builds
    // everything later compiles most crates again, because their features differ.
    // This process makes room for the demo, so that the terminal and Ctrl-C belong to it alone.
    let error = process::command(session, CARGO)
        .args(["run", "--package", "tiny-harness", "--no-default-features", "--", "demo"])
        .args(arguments)
        .exec();
    Err(Failure::new(format!("cannot run the demo: {error}")))
}
