//! `cargo xtask tools`: fetches what tests use and cargo does not bring, once, pinned, into `.tools/`.

use super::{Command, no_arguments};
use crate::{
    process,
    session::{Failure, Outcome, Session},
    steps,
};

pub(super) const COMMAND: Command =
    Command { name: "tools", arguments: "", about: "fetch pinned tools that tests use into .tools/", run };

/// One tool: a Python script that pins versions, installs into `.tools/<name>` and does nothing when that is done.
struct Tool {
    name: &'static str,
    used_for: &'static str,
    script: &'static str,
}

/// Adding a tool is one entry here and one script.
const TOOLS: &[Tool] = &[
    Tool {
        name: "local-model",
        used_for: "tests against a real model on this machine",
        script: "tools/local-model/setup.py",
    },
    Tool {
        name: "a2a-kits",
        used_for: "A2A clients and kits of others, for `cargo xtask conformance`",
        script: "tools/a2a-kits/setup.py",
    },
    Tool {
        name: "temporal",
        used_for: "tests against a real Temporal server on this machine",
        script: "tools/temporal/setup.py",
    },
    Tool {
        name: "postgres",
        used_for: "tests of the PostgreSQL store against a real server",
        script: "tools/postgres/setup.py",
    },
];

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    fetch(session)
}

/// Fetches what is missing. A failure is one only where nothing may be skipped; elsewhere the tests that need the tool
/// say that they are skipped.
pub(super) fn fetch(session: &Session) -> Outcome {
    for tool in TOOLS {
        steps::say(&format!("    {}: {}", tool.name, tool.used_for));
        match process::run(session, "python3", &[tool.script]) {
            Ok(()) => {}
            Err(failure) if session.require_tools => {
                return Err(Failure::new(format!("cannot set up {}: {failure}", tool.name)));
            }
            Err(failure) => {
                steps::say(&format!("    {} is not there ({failure}); its tests will be skipped", tool.name));
            }
        }
    }
    Ok(())
}
