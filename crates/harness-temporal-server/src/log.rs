//! What a server writes: always drained, cleaned, and kept within bounds.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use harness_model::clean_field;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::StartFailure;

/// Where a server's output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogTo {
    /// Into the log of this process, as warnings; what it says while it is being stopped counts as debugging.
    #[default]
    Tracing,
    /// To the end of this file, which is private to its owner; at most 10 MiB for each start.
    File(PathBuf),
}

/// Bytes of a line; the rest of a longer one is dropped.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Characters of a line once it is cleaned.
const LINE_CHARS_MAX: usize = 2_000;
/// Lines that are remembered for messages about the end, and characters of each.
const LAST_LINES: usize = 5;
const LAST_LINE_CHARS_MAX: usize = 300;
/// Bytes that one server adds to a file.
const FILE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Lines in one window of the process's own log.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_LINES_MAX: u32 = 50;
const READ_BYTES: usize = 8 * 1024;
/// How long output may stay open and silent once the server is gone, held by something that it left behind.
const QUIET: Duration = Duration::from_millis(300);

/// How a Go program says why it crashed. What follows is long, and says where.
const CRASHES: [&str; 2] = ["panic: ", "fatal error: "];

/// The last lines of a server, for messages about its end; before them why it crashed, if it did.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastLines(Arc<Mutex<Remembered>>);

#[derive(Debug, Default)]
struct Remembered {
    crash: Option<String>,
    last: VecDeque<String>,
}

impl LastLines {
    pub(crate) fn get(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.crash.iter().chain(&lines.last).cloned().collect()
    }

    fn note(&self, line: &str) {
        let line = clean_field(line, Some(LAST_LINE_CHARS_MAX)).text;
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if CRASHES.iter().any(|crash| line.starts_with(crash)) {
            lines.crash = Some(line);
            return;
        }
        if lines.last.len() == LAST_LINES {
            lines.last.pop_front();
        }
        lines.last.push_back(line);
    }
}

/// Where lines go, and how many more.
#[derive(Debug)]
pub(crate) enum Sink {
    Tracing { window: Option<Instant>, lines: u32, left_out: u64 },
    File { file: File, bytes_left: usize },
}

impl Sink {
    pub(crate) fn open(to: &LogTo) -> Result<Self, StartFailure> {
        match to {
            LogTo::Tracing => Ok(Self::Tracing { window: None, lines: 0, left_out: 0 }),
            LogTo::File(path) => {
                let failed = |source| StartFailure::Log { path: path.clone(), source };
                let file =
                    OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(failed)?;
                // It may be there from before.
                file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
                Ok(Self::File { file, bytes_left: FILE_BYTES_MAX })
            }
        }
    }

    fn write(&mut self, line: &str, now: Instant, leaving: bool) {
        match self {
            Self::Tracing { .. } if leaving => tracing::debug!(target: "temporal", "{line}"),
            Self::Tracing { window, lines, left_out } => {
                if window.is_none_or(|begun| now.duration_since(begun) >= WINDOW) {
                    if *left_out > 0 {
                        tracing::warn!(target: "temporal", lines = *left_out, "output of Temporal was left out");
                    }
                    (*window, *lines, *left_out) = (Some(now), 0, 0);
                }
                if *lines < WINDOW_LINES_MAX {
                    *lines += 1;
                    tracing::warn!(target: "temporal", "{line}");
                } else {
                    *left_out += 1;
                }
            }
            Self::File { file, bytes_left } => {
                // A full disk must not stop the server, which would block on its output.
                if let Some(left) = bytes_left.checked_sub(line.len() + 1) {
                    *bytes_left = left;
                    writeln!(file, "{line}").ok();
                } else if *bytes_left > 0 {
                    *bytes_left = 0;
                    writeln!(file, "[the rest of this server's output is left out]").ok();
                }
            }
        }
    }
}

/// What changes while output is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Until {
    /// Cancelled when the server is being stopped.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when it is gone; then silence is the end of its output too.
    pub(crate) over: CancellationToken,
}

/// Reads output to its end.
pub(crate) async fn drain(
    mut output: impl AsyncRead + Unpin,
    mut sink: Sink,
    last_lines: LastLines,
    until: Until,
) {
    let mut lines = Lines::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let read = tokio::select! {
            biased;
            () = until.over.cancelled() => match timeout(QUIET, output.read(&mut chunk)).await {
                Ok(read) => read,
                Err(_) => break,
            },
            read = output.read(&mut chunk) => read,
        };
        let Ok(read @ 1..) = read else { break };
        for line in lines.add(chunk.get(..read).unwrap_or_default()) {
            last_lines.note(&line);
            sink.write(&line, Instant::now(), until.leaving.is_cancelled());
        }
    }
    for line in lines.add(b"\n") {
        last_lines.note(&line);
        sink.write(&line, Instant::now(), until.leaving.is_cancelled());
    }
}

/// Cuts bytes into clean lines.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// The lines that these bytes complete; empty ones are left out.
    fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                let line = clean_field(&String::from_utf8_lossy(&self.begun), Some(LINE_CHARS_MAX)).text;
                self.begun.clear();
                if !line.is_empty() {
                    complete.push(line);
                }
            }
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_clean_and_bounded() {
        let mut lines = Lines::default();
        assert_eq!(lines.add(b"one\ntw"), ["one"]);
        assert_eq!(lines.add(b"o\r\n\n\x1b[31mred\x07\n"), ["two", "[31mred"]);
        assert!(lines.add(&vec![b'x'; 3 * LINE_BYTES_MAX]).is_empty());
        assert!(lines.begun.len() <= LINE_BYTES_MAX);
        assert_eq!(lines.add(b"\n")[0].chars().count(), LINE_CHARS_MAX);
        assert_eq!(lines.add(b"\xff after\n"), ["\u{fffd} after"]);
    }

    #[test]
    fn a_file_takes_so_much_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let mut sink = Sink::open(&LogTo::File(path.clone())).unwrap();
        let line = "x".repeat(LINE_CHARS_MAX);
        for _ in 0..2 * FILE_BYTES_MAX / LINE_CHARS_MAX {
            sink.write(&line, Instant::now(), false);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("before\nxx") && text.ends_with("left out]\n"));
        assert!(text.len() < FILE_BYTES_MAX + 100);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn what_nobody_ends_with_a_newline_counts_and_only_the_last_lines_are_kept() {
        let last = LastLines::default();
        let text = "panic: why\n1\n2\n3\n4\n5\n6\nError: no";
        let sink = Sink::open(&LogTo::Tracing).unwrap();
        drain(text.as_bytes(), sink, last.clone(), Until::default()).await;
        assert_eq!(last.get(), ["panic: why", "3", "4", "5", "6", "Error: no"]);
    }
}
