//! Visible progress: each step is named when it starts and timed when it ends.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use crate::session::Outcome;

/// Prints one line to stderr, where the tools that run beside it print theirs.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}

/// Prints one line to stdout: the output that was asked for.
pub(crate) fn answer(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}

/// The steps of one command and how long each took.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Runs one step; the first failure ends the command.
    #[expect(clippy::disallowed_methods, reason = "a developer command measures the time it really took")]
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> Outcome) -> Outcome {
        say(&format!("==> {name}"));
        let start = Instant::now();
        let outcome = work();
        let took = start.elapsed();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        say(&format!("==> {name}: {word} in {}", seconds(took)));
        self.done.push((name, took));
        outcome
    }

    /// One line that sums up a finished command.
    pub(crate) fn summary(&self, command: &str) {
        let steps: Vec<String> =
            self.done.iter().map(|(name, took)| format!("{name} {}", seconds(*took))).collect();
        let total = self.done.iter().map(|(_, took)| *took).sum();
        say(&format!("{command}: all {} steps ok in {} ({})", steps.len(), seconds(total), steps.join(", ")));
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}
