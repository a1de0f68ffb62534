//! `cargo xtask test`: the tests of the workspace or of one crate.

use super::Command;
use crate::{
    process::{self, CARGO},
    session::{Failure, Outcome, Session},
    steps,
};

pub(super) const COMMAND: Command =
    Command { name: "test", arguments: "[crate]", about: "run all tests, or those of one crate", run };

fn run(session: &Session, arguments: &[String]) -> Outcome {
    match arguments {
        [] => all(session),
        [package] => test(session, &["--package", package]),
        [_, extra, ..] => {
            Err(Failure::new(format!("test takes one crate at most, and got {extra:?} as well")))
        }
    }
}

/// Every test of the workspace, crash points included.
pub(super) fn all(session: &Session) -> Outcome {
    test(session, &["--workspace"])
}

fn test(session: &Session, what: &[&str]) -> Outcome {
    if process::succeeds(session, CARGO, &["nextest", "--version"]) {
        let runner = ["nextest", "run", "--profile", session.profile, "--all-features"];
        process::run(session, CARGO, &[&runner, what].concat())
    } else {
        steps::say(
            "    cargo-nextest is not installed: `cargo test` runs the same tests, slower and without time limits",
        );
        process::run(session, CARGO, &[&["test", "--all-features"], what].concat())
    }
}
