//! Logs: one JSON object per line, with secrets masked and control characters replaced at this border.
//!
//! Every part of the harness writes `tracing` events; the binary calls [`init_logs`] once. Fields of the spans around an
//! event (`task_id`, `operation`, ...) are fields of its line.

mod capture;
mod fields;
mod init;
mod layer;
mod line;
mod sink;

pub use capture::LogCapture;
pub use init::{
    LogError, LogGuard, LogLevel, LogOptions, LogTarget, ScopedLogs, UnknownLevel, init_logs, scoped_logs,
};
