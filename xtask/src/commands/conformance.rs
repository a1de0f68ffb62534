//! `cargo xtask conformance`: clients and kits of others against the built server, compared with what is expected.

use super::{Command, no_arguments};
use crate::{
    conformance::{Agent, EXPECTATIONS, Expectations, KITS, Kit, Tally},
    metadata::Metadata,
    process::{self, CARGO},
    session::{Failure, Outcome, Session},
    steps,
};

pub(super) const COMMAND: Command = Command {
    name: "conformance",
    arguments: "",
    about: "run A2A clients and kits of others against the server; `tools` installs them",
    run,
};

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    all(session)
}

/// Every kit that is installed. A new failure, an unexpected pass and a check that is gone all fail.
pub(super) fn all(session: &Session) -> Outcome {
    let expectations = Expectations::read(session)?;
    let (installed, missing): (Vec<&Kit>, Vec<&Kit>) = KITS.iter().partition(|kit| kit.is_installed(session));
    for kit in &missing {
        steps::say(&format!("    NOT RUN: {}: it is not installed; `cargo xtask tools` says why", kit.name));
    }
    if session.require_tools && !missing.is_empty() {
        return Err(Failure::new("kits are missing and nothing may be skipped"));
    }
    if installed.is_empty() {
        return Ok(());
    }
    process::run(session, CARGO, &["build", "--package", "tiny-harness"])?;
    let target = Metadata::load(session)?.target_directory;
    let mut agent = Agent::start(session, target.as_ref())?;
    let mut problems = 0;
    for kit in installed {
        let checks = kit.run(session, agent.url(), agent.directory())?;
        let judged = expectations.judge(kit.name, &checks);
        let mut tally = Tally::default();
        for verdict in &judged {
            tally.add(verdict);
            steps::say(&format!("    {verdict}"));
        }
        steps::say(&format!("    {}: {tally}", kit.name));
        problems += tally.problems;
    }
    agent.check_alive()?;
    match problems {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} check(s) are not as {EXPECTATIONS} says"))),
    }
}
