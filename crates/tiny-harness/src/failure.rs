//! How a command ends when it does not end well: a text for the person and an exit status.

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One line per problem, for standard error.
    pub(crate) lines: Vec<String>,
    /// Exit status: 1 for failures, 2 for configuration and usage.
    pub(crate) status: u8,
}

impl Failure {
    /// Something failed.
    pub(crate) fn general(text: impl Into<String>) -> Self {
        Self { lines: vec![format!("error: {}", text.into())], status: 1 }
    }

    /// The command was typed in a way that cannot work.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { lines: vec![format!("error: {}", text.into())], status: 2 }
    }

    /// The configuration has problems; nothing was started.
    pub(crate) fn config(lines: Vec<String>) -> Self {
        Self { lines, status: 2 }
    }
}
