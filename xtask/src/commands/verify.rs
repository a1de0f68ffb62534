//! `cargo xtask verify`: everything, in one command.

use super::{Command, check, conformance, docs, no_arguments, test, tools};
use crate::{
    session::{Outcome, Session},
    steps::Steps,
};

pub(super) const COMMAND: Command = Command {
    name: "verify",
    arguments: "",
    about: "check, tools, readme, conformance, test: all there is to know",
    run,
};

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    all(session, COMMAND.name)
}

/// The steps of `verify`. The tests come last so that the runner's own summary is what one reads at the end.
pub(super) fn all(session: &Session, command: &str) -> Outcome {
    let mut steps = Steps::default();
    check::all(session, &mut steps)?;
    steps.step("tools", || tools::fetch(session))?;
    steps.step("readme", || docs::run_blocks(session))?;
    steps.step("conformance", || conformance::all(session))?;
    steps.step("test", || test::all(session))?;
    steps.summary(command);
    Ok(())
}
