//! What is wrong with a configuration.

use std::fmt;

use harness_model::{Redactor, one_line, truncate_chars};

/// Characters of a value that is quoted in a message.
const QUOTE_CHARS_MAX: usize = 60;

/// Characters of a key that is shown.
const KEY_CHARS_MAX: usize = 160;

/// One problem of a configuration. `Display` is the whole line that people see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    /// The file, as it was given; `None` for problems of the environment.
    pub(crate) file: Option<String>,
    /// 1-based line in the file.
    pub(crate) line: Option<usize>,
    /// Dotted key, environment variable, or `<root>`.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        // Names of keys and files come from outside; a problem stays one line whatever is in them.
        let (place, message, remedy) = (one_line(&place), one_line(&self.message), one_line(&self.remedy));
        let key = truncate_chars(&one_line(&self.key), KEY_CHARS_MAX);
        let space = if place.is_empty() { "" } else { " " };
        write!(f, "configuration error: {place}{space}{message}; {remedy} ({key})")
    }
}

/// Why a value is refused: the rest of a sentence that begins with the key, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// `must be a string, not an integer`.
    pub(super) message: String,
    /// What to do; `None` lets the reader show a value that would do.
    pub(super) remedy: Option<String>,
}

impl Refusal {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: None }
    }

    pub(super) fn with_remedy(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()) }
    }
}

/// A value of the file as it may be repeated: one line, short, nothing that looks like a secret.
pub(super) fn quoted(value: &str) -> String {
    format!("`{}`", truncate_chars(&one_line(&Redactor::default().text(value)), QUOTE_CHARS_MAX))
}
