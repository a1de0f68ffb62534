//! Setting up of logging.

use std::{fmt, io, path::PathBuf, str::FromStr, sync::Arc};

use harness_model::Redactor;
use harness_ports::Clock;
use tracing::{Subscriber, level_filters::LevelFilter, subscriber};
use tracing_subscriber::{Layer, Registry, filter::Targets, layer::SubscriberExt};

use crate::{LogCapture, layer::JsonLines, sink::Sink};

/// Prefixes of the targets of this project.
const OWN_TARGETS: [&str; 2] = ["harness_", "tiny_harness"];

/// How to log.
pub struct LogOptions {
    /// Least level of the harness's own events. Other crates are heard from `WARNING` upwards, and never below this.
    pub level: LogLevel,
    /// Where lines go.
    pub target: LogTarget,
    /// Masks secrets in messages and fields.
    pub redactor: Arc<Redactor>,
    /// Where the time of a line comes from.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for LogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogOptions")
            .field("level", &self.level)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// Where lines go.
#[derive(Clone, Debug)]
pub enum LogTarget {
    /// Standard error.
    Stderr,
    /// Appended to a file that only its owner may read.
    File(PathBuf),
    /// Kept in memory.
    Capture(LogCapture),
}

/// Levels of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Something failed and somebody should look.
    Error,
    /// Something is odd.
    Warning,
    /// What happens, in few lines.
    #[default]
    Info,
    /// What happens, in many lines.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// Every level, least first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warning, Self::Info, Self::Debug, Self::Trace];

    /// The name in lines and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warning => "WARNING",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Error => LevelFilter::ERROR,
            Self::Warning => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

/// A name that is no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a log level is ERROR, WARNING, INFO, DEBUG or TRACE")]
pub struct UnknownLevel;

impl FromStr for LogLevel {
    type Err = UnknownLevel;

    /// In any case; `WARN` is `WARNING`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let name = name.to_ascii_uppercase();
        let name = if name == "WARN" { "WARNING" } else { &name };
        Self::ALL.into_iter().find(|level| level.name() == name).ok_or(UnknownLevel)
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be written.
    #[error("cannot write the log file {path}")]
    OpenFile {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Logging was set up before in this process.
    #[error("logging is already set up")]
    AlreadySet,
}

/// Keeps logging alive; dropping it makes sure that a log file is on disk.
#[derive(Debug)]
#[must_use = "dropping the guard is for the end of the process"]
pub struct LogGuard {
    sink: Arc<Sink>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.sink.flush();
    }
}

/// Logging of the current thread, until it is dropped.
#[derive(Debug)]
#[must_use = "logging ends when this is dropped"]
pub struct ScopedLogs {
    _thread: subscriber::DefaultGuard,
}

/// Sets up logging for the process. Call it once, in the binary.
pub fn init_logs(options: LogOptions) -> Result<LogGuard, LogError> {
    let (subscriber, sink) = build(options)?;
    subscriber::set_global_default(subscriber).map_err(|_| LogError::AlreadySet)?;
    Ok(LogGuard { sink })
}

/// Sets up logging for the current thread only, for tests.
pub fn scoped_logs(options: LogOptions) -> Result<ScopedLogs, LogError> {
    let (subscriber, _) = build(options)?;
    Ok(ScopedLogs { _thread: subscriber::set_default(subscriber) })
}

fn build(options: LogOptions) -> Result<(impl Subscriber + Send + Sync + 'static, Arc<Sink>), LogError> {
    let sink = Arc::new(match options.target {
        LogTarget::Stderr => Sink::Stderr,
        LogTarget::File(path) => Sink::file(&path).map_err(|source| LogError::OpenFile { path, source })?,
        LogTarget::Capture(capture) => Sink::Memory(capture),
    });
    let level = options.level.filter();
    let filter = Targets::new()
        .with_targets(OWN_TARGETS.map(|target| (target, level)))
        .with_default(level.min(LevelFilter::WARN));
    let layer = JsonLines { sink: Arc::clone(&sink), redactor: options.redactor, clock: options.clock };
    Ok((Registry::default().with(layer.with_filter(filter)), sink))
}
