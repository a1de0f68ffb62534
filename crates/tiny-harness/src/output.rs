//! What the commands print. Everything that comes from outside is cleaned before it gets here.

use std::io::{self, IsTerminal as _, Write};

/// Prints a line on standard output. A closed pipe ends the program's talk, not the program.
pub(crate) fn line(text: &str) {
    let mut out = io::stdout().lock();
    // Nobody listens any more: there is nothing left to say and nobody to say it to.
    let _gone = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints text without a line end.
pub(crate) fn text(text: &str) {
    let mut out = io::stdout().lock();
    let _gone = write!(out, "{text}").and_then(|()| out.flush());
}

/// Columns of the terminal that standard output goes to; `None` when it goes elsewhere.
pub(crate) fn columns() -> Option<usize> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten()?;
    // Terminals that do not know their size say 0.
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// A word of a command line as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |ch: char| ch.is_alphanumeric() || "-_./:@%+=,".contains(ch);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Prints a line on standard error.
pub(crate) fn problem(text: &str) {
    let mut err = io::stderr().lock();
    let _gone = writeln!(err, "{text}").and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_of_a_command_line_are_quoted_when_a_shell_would_take_them_apart() {
        assert_eq!(quoted("/tmp/demo-1"), "/tmp/demo-1");
        assert_eq!(quoted("my demo"), "'my demo'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
