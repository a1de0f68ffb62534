//! Other programs.

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use crate::session::{Failure, Outcome, REQUIRE_TOOLS, Session};

/// Program that runs Cargo; the toolchain comes from `rust-toolchain.toml`.
pub(crate) const CARGO: &str = "cargo";

/// A command that runs at the root of the repository.
pub(crate) fn command(session: &Session, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(&session.root);
    if session.require_tools {
        command.env(REQUIRE_TOOLS, "1");
    }
    // Set for this process by the outer `cargo run`; left in place they would make an inner cargo rebuild its crates.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(variable);
    }
    command
}

/// Runs a program to its end with this terminal.
pub(crate) fn run<A: AsRef<OsStr>>(session: &Session, program: &str, arguments: &[A]) -> Outcome {
    let shown = shown(program, arguments);
    let status = command(session, program)
        .args(arguments)
        .status()
        .map_err(|error| Failure::new(format!("cannot run `{shown}`: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("`{shown}` ended with {status}"))) }
}

/// Runs a program and returns what it printed on stdout; stderr goes to this terminal.
pub(crate) fn capture(session: &Session, program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let shown = shown(program, arguments);
    let output = command(session, program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("cannot run `{shown}`: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("`{shown}` ended with {}", output.status)));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::new(format!("`{shown}` printed something else than text")))
}

/// Whether a program is there and ends well. Nothing of it is shown.
pub(crate) fn succeeds(session: &Session, program: &str, arguments: &[&str]) -> bool {
    command(session, program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn shown<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
    format!("{program} {}", arguments.join(" "))
}
