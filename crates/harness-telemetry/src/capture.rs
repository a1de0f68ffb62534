//! Lines kept in memory, for tests.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Lines kept at most; older ones are dropped.
const LINES_MAX: usize = 10_000;

/// Keeps log lines in memory. Clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct LogCapture {
    lines: Arc<Mutex<Vec<String>>>,
}

impl LogCapture {
    /// The lines so far, oldest first, without their line breaks.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines so far as JSON.
    pub fn records(&self) -> Vec<Value> {
        self.lines().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn push(&self, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.remove(0);
        }
        lines.push(line.trim_end().to_owned());
    }
}
