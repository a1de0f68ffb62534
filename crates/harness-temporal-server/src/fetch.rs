//! Fetching the program once, from the Python package index, with its sum checked.

use std::{path::Path, process::Stdio, time::Duration};

use harness_model::clean_field;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::timeout,
};

/// The version that is fetched when the machine has none. The sums are in `tools/temporal/setup.py`.
pub const PINNED_VERSION: &str = "1.9.1";
/// Pins, downloads, checks and unpacks; `cargo xtask tools` runs the same.
const SCRIPT: &str = include_str!("../../../tools/temporal/setup.py");
const INTERPRETER: &str = "python3";
/// A little more than the script gives itself for its download.
const FETCH_MAX: Duration = Duration::from_secs(660);
/// Bytes of what the script says that are kept: the end of it.
const SAID_BYTES_MAX: usize = 8 * 1024;
/// Characters of the cause.
const CAUSE_CHARS_MAX: usize = 600;

/// Name of the fetched program in the download folder.
pub(crate) fn file_name() -> String {
    format!("temporal-{PINNED_VERSION}")
}

/// Fetches the program to this path. Errors: why not, in one cleaned line.
/// Dropping the future ends what it started; a file that is there is whole.
pub(crate) async fn fetch(target: &Path) -> Result<(), String> {
    tracing::info!(version = PINNED_VERSION, to = %target.display(), "downloading the Temporal CLI");
    let mut child = Command::new(INTERPRETER)
        .arg("-c")
        .arg(SCRIPT)
        .arg(target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot run `{INTERPRETER}`: {error}"))?;
    let group = Group::of(&child);
    let stderr = child.stderr.take();
    let ended = timeout(FETCH_MAX, async { tokio::join!(child.wait(), last_of(stderr)) }).await;
    drop(group);
    match ended {
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(status), said)) => {
            Err(cause(&said).unwrap_or_else(|| format!("`{INTERPRETER}` ended with {status}")))
        }
        Ok((Err(error), _)) => Err(format!("cannot wait for `{INTERPRETER}`: {error}")),
        Err(_) => Err(format!("it took longer than {} s", FETCH_MAX.as_secs())),
    }
}

/// The process group of the script and of pip below it; killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It fails when nobody is left, which is what is wanted.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

async fn last_of(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let Some(mut pipe) = pipe else { return Vec::new() };
    let mut said = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        said.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let excess = said.len().saturating_sub(SAID_BYTES_MAX);
        said.drain(..excess);
    }
    said
}

/// The last two lines that say something: the script's own, after one of what it ran.
fn cause(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let mut lines = said.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.next()?.trim_start_matches("temporal: MISSING: ");
    let both = lines.next().map(|before| format!("{last} ({before})"));
    Some(clean_field(&both.unwrap_or_else(|| last.to_owned()), Some(CAUSE_CHARS_MAX)).text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_the_script_pins() {
        assert!(SCRIPT.contains(&format!("\nVERSION = \"{PINNED_VERSION}\"\n")));
    }

    #[test]
    fn the_cause_is_what_was_said_last_and_what_came_before_it() {
        let said = b"noise\nERROR: none found\n\ntemporal: MISSING: pip failed\n";
        assert_eq!(cause(said).as_deref(), Some("pip failed (ERROR: none found)"));
        assert_eq!(cause(b"Killed").as_deref(), Some("Killed"));
        assert_eq!(cause(b"\n \n"), None);
    }
}
