//! What every command gets: where the repository is and how strict to be.

use std::{fmt, path::PathBuf};

/// Environment variable that turns "skipped, a tool is missing" into a failure. Tests read it too.
pub(crate) const REQUIRE_TOOLS: &str = "HARNESS_REQUIRE_TOOLS";

/// The circumstances of one run.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Root of the repository.
    pub(crate) root: PathBuf,
    /// Whether a missing tool is a failure.
    pub(crate) require_tools: bool,
    /// nextest profile.
    pub(crate) profile: &'static str,
}

impl Session {
    /// Reads the environment; called once, by `main`.
    #[expect(clippy::disallowed_methods, reason = "the one place of this binary that reads the environment")]
    pub(crate) fn from_environment() -> Self {
        let manifest_dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        Self {
            root: manifest_dir.parent().map_or_else(|| PathBuf::from("."), PathBuf::from),
            require_tools: std::env::var(REQUIRE_TOOLS).is_ok_and(|value| value == "1"),
            profile: "default",
        }
    }

    /// The same, as CI runs it: nothing is skipped, nothing is retried into green.
    pub(crate) fn strict(&self) -> Self {
        Self { root: self.root.clone(), require_tools: true, profile: "ci" }
    }
}

/// Why a command failed, for the person who typed it.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a command ended.
pub(crate) type Outcome = Result<(), Failure>;
