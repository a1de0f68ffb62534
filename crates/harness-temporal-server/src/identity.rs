//! Which process is meant: an id alone is given to another process one day.

use std::{fs, path::PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// One process of this machine: its id and when it started. Linux only; elsewhere nothing is known of any process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: i32,
    /// Clock ticks since the machine started.
    started: u64,
}

impl Identity {
    /// The process with this id, if it runs.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may contain anything, so what follows is counted from its end.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?;
        // Dead, and only waits for its parent to notice.
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started })
    }

    /// This very process.
    pub(crate) fn own() -> Option<Self> {
        Self::of(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// Whether it runs still.
    pub(crate) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// The program that it runs.
    pub(crate) fn program(self) -> Option<PathBuf> {
        let program = fs::read_link(format!("/proc/{}/exe", self.pid)).ok()?;
        self.is_alive().then_some(program)
    }

    /// Kills it, if it runs still.
    pub(crate) fn kill(self) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            // It may end on its own in this moment.
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// As in a record: `PID STARTED`.
impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.pid, self.started)
    }
}

impl std::str::FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, started) = text.split_once(' ').ok_or(())?;
        let pid = pid.parse().map_err(drop)?;
        // 0 and below name groups of processes.
        if pid < 1 {
            return Err(());
        }
        Ok(Self { pid, started: started.parse().map_err(drop)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_alive_and_its_record_names_it() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert_eq!(own.to_string().parse(), Ok(own));
        assert_eq!(own.program(), std::env::current_exe().ok());
        let earlier = Identity { started: own.started - 1, ..own };
        assert!(!earlier.is_alive(), "an earlier process had the same id");
        assert_eq!(earlier.program(), None);
    }

    #[test]
    fn nonsense_names_nobody() {
        for text in ["", "1", "0 5", "-1 5", "x 5", "1 x", "1 2 3"] {
            assert_eq!(text.parse::<Identity>(), Err(()), "{text:?}");
        }
    }
}
