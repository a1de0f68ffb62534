//! `cargo xtask check`: everything that can be said without running the product.

use super::{Command, no_arguments};
use crate::{
    process::{self, CARGO},
    session::{Outcome, Session},
    steps::{self, Steps},
};

pub(super) const COMMAND: Command =
    Command { name: "check", arguments: "", about: "format, tidy, dependencies, lints", run };

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    let mut steps = Steps::default();
    all(session, &mut steps)?;
    steps.summary(COMMAND.name);
    Ok(())
}

/// The steps of `check`, cheapest first.
pub(super) fn all(session: &Session, steps: &mut Steps) -> Outcome {
    steps.step("fmt", || process::run(session, CARGO, &["fmt", "--all", "--check"]))?;
    steps.step("tidy", || super::tidy::tidy(session))?;
    if process::succeeds(session, CARGO, &["deny", "--version"]) {
        steps.step("deny", || process::run(session, CARGO, &["deny", "--workspace", "check"]))?;
    } else {
        steps::say(
            "    cargo-deny is not installed: licences and owners are checked by tidy, advisories are not",
        );
    }
    if process::succeeds(session, "typos", &["--version"]) {
        steps.step("typos", || process::run(session, "typos", &[] as &[&str]))?;
    }
    // Warnings become errors by argument: a RUSTFLAGS of its own would make this step and the tests rebuild each
    // other's dependencies.
    steps.step("clippy", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        process::run(session, CARGO, &clippy)
    })
}
