//! What the commands print. Everything that comes from outside is cleaned before it gets here.

use std::io::{self, Write};

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

/// Prints a line on standard error.
pub(crate) fn problem(text: &str) {
    let mut err = io::stderr().lock();
    let _gone = writeln!(err, "{text}").and_then(|()| err.flush());
}
