//! `cargo xtask tidy`: the rules that a command can hold.

use super::{Command, names, no_arguments};
use crate::{
    metadata::Metadata,
    session::{Failure, Outcome, Session},
    steps,
    tidy::{Tree, check},
};

pub(super) const COMMAND: Command = Command {
    name: "tidy",
    arguments: "",
    about: "check the invariants of the repository; see STYLE.md",
    run,
};

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    tidy(session)?;
    steps::say("tidy: ok");
    Ok(())
}

/// Every rule over the whole repository; all problems are shown.
pub(super) fn tidy(session: &Session) -> Outcome {
    let tree = Tree::read(&session.root)?;
    let metadata = Metadata::load(session)?;
    let problems = check(&tree, &metadata, &names());
    for problem in &problems {
        steps::say(&problem.to_string());
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("tidy found {count} problem(s)"))),
    }
}
