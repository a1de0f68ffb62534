//! Other programs.

use std::{
    ffi::OsStr,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
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

/// Runs a process in a group of its own and ends the whole group afterwards: nothing that it started stays behind.
/// Errors: it cannot be run, or does not end within `limit`.
pub(crate) fn run_bounded(
    session: &Session,
    process: &mut Command,
    limit: Duration,
) -> Result<ExitStatus, Failure> {
    let name = process.get_program().to_string_lossy().into_owned();
    let mut child = process
        .process_group(0)
        .spawn()
        .map_err(|error| Failure::new(format!("cannot run `{name}`: {error}")))?;
    let ended = wait(&mut child, limit);
    // Fails when the group is empty already, which is what one hopes for. bash brings its own `kill`; a small Debian
    // has no other.
    succeeds(session, "bash", &["-c", &format!("kill -KILL -- -{}", child.id())]);
    match ended {
        Ok(Some(status)) => Ok(status),
        Ok(None) => {
            child.wait().ok();
            Err(Failure::new(format!("`{name}` did not end within {} s", limit.as_secs())))
        }
        Err(error) => Err(Failure::new(format!("cannot wait for `{name}`: {error}"))),
    }
}

fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    poll(limit, || child.try_wait().transpose()).transpose()
}

/// Asks again and again, until there is an answer or the time is over.
#[expect(
    clippy::disallowed_methods,
    reason = "std offers no wait with a limit; a tenth of a second is fine here"
)]
pub(crate) fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || start.elapsed() >= limit {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn shown<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
    format!("{program} {}", arguments.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_end_is_ended_with_everything_it_started() {
        let session = Session::from_environment();
        let mut bash = command(&session, "bash");
        bash.args(["-c", "sleep 600 & wait"]);
        assert!(run_bounded(&session, &mut bash, Duration::from_millis(300)).is_err());
    }
}
