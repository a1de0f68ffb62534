//! Why there is no server.

use std::{fmt, io, path::PathBuf};

use harness_model::{ErrorCode, codes};

/// A server could not be started; nothing is left running or locked.
#[derive(Debug)]
pub struct StartError {
    /// What went wrong.
    pub failure: StartFailure,
    /// Whether somebody chose the program; then there is no point in telling them that they could.
    pub(crate) binary_was_chosen: bool,
}

impl StartError {
    /// What may help, when there is something to say beyond the failure.
    pub fn hint(&self) -> Option<&'static str> {
        let is_about_program = match &self.failure {
            StartFailure::Binary(
                BinaryError::NotExecutable { .. } | BinaryError::Untrusted { .. } | BinaryError::Fetch { .. },
            )
            | StartFailure::InUse { .. }
            | StartFailure::PortTaken { .. }
            | StartFailure::StatePath { .. }
            | StartFailure::State { .. }
            | StartFailure::Log { .. } => false,
            StartFailure::Binary(BinaryError::DownloadDir { .. })
            | StartFailure::Spawn { .. }
            | StartFailure::Ended { .. }
            | StartFailure::NotReady { .. }
            | StartFailure::NotLoopback { .. } => true,
        };
        (is_about_program && !self.binary_was_chosen)
            .then_some("set `[temporal.embedded] binary_path` to a Temporal CLI that works")
    }

    /// The code that people see.
    pub fn code(&self) -> ErrorCode {
        match &self.failure {
            StartFailure::InUse { .. } => codes::STORE_LOCKED,
            StartFailure::Binary(_)
            | StartFailure::PortTaken { .. }
            | StartFailure::StatePath { .. }
            | StartFailure::State { .. }
            | StartFailure::Log { .. }
            | StartFailure::Spawn { .. }
            | StartFailure::Ended { .. }
            | StartFailure::NotReady { .. }
            | StartFailure::NotLoopback { .. } => codes::TEMPORAL_START_FAILED,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.failure)?;
        match self.hint() {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.failure)
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StartFailure {
    /// There is no program to run.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// Another process owns a server on this file.
    #[error("{} is in use by another tiny-harness process", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// Somebody else listens on the port that was asked for.
    #[error("port {port} on 127.0.0.1 is taken; choose another `[temporal.embedded] port`, or leave it out")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// The server would read the path as something else.
    #[error("{} cannot be a database path: it contains `%`, `?` or `#`", path.display())]
    StatePath {
        /// The database.
        path: PathBuf,
    },
    /// The database, its lock or its permissions cannot be dealt with.
    #[error("cannot {what} {}", path.display())]
    State {
        /// What was tried, such as `lock`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file for the server's output cannot be opened.
    #[error("cannot write the log {}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program does not run at all.
    #[error("cannot run {}", binary.display())]
    Spawn {
        /// The program.
        binary: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It ended before it answered.
    #[error("{} ended with {status} before it was ready: {}", binary.display(), said(last_lines))]
    Ended {
        /// The program.
        binary: PathBuf,
        /// Its exit status.
        status: String,
        /// The last lines that it wrote, cleaned.
        last_lines: Vec<String>,
    },
    /// It did not answer in time and was killed.
    #[error("{} was not ready within {seconds} s: {}", binary.display(), said(last_lines))]
    NotReady {
        /// The program.
        binary: PathBuf,
        /// How long it had.
        seconds: u64,
        /// The last lines that it wrote, cleaned.
        last_lines: Vec<String>,
    },
    /// It listened to more than this machine and was killed.
    #[error("{} listens on {address}, where others can reach it", binary.display())]
    NotLoopback {
        /// The program.
        binary: PathBuf,
        /// What it listened on.
        address: std::net::SocketAddr,
    },
}

/// Why there is no program to run.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// What was chosen is no program.
    #[error("{} is not an executable file", path.display())]
    NotExecutable {
        /// The path that was chosen.
        path: PathBuf,
    },
    /// Somebody else could have put something else there.
    #[error("{} {why}; nothing in it is run. Make it yours alone (`chmod go-w`, `chown`), or remove it", path.display())]
    Untrusted {
        /// The folder or the program.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The folder for the program cannot be made or looked at.
    #[error("cannot use the download folder {}", path.display())]
    DownloadDir {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not on this machine and could not be fetched.
    #[error(
        "there is no `temporal` on PATH, and it cannot be fetched: {cause}. Install the Temporal CLI, or set \
         `[temporal.embedded] binary_path` to one"
    )]
    Fetch {
        /// Why, cleaned and cut.
        cause: String,
    },
}

fn said(last_lines: &[String]) -> String {
    if last_lines.is_empty() { "it said nothing".to_owned() } else { last_lines.join(" / ") }
}
