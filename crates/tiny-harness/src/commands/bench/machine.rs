//! The machine the numbers come from; without it they mean nothing.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use serde::Serialize;
use tokio::time::Instant;

use super::figure::Times;
use crate::failure::Failure;

/// Flushes that are timed.
const FLUSHES: u64 = 200;
/// Bytes before each flush; a page of the store.
const PAGE: usize = 4_096;

/// What the numbers depend on.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) cpu: String,
    pub(super) memory_mb: u64,
    pub(super) kernel: String,
    pub(super) build: &'static str,
    /// Processes that wanted to run during the minute before.
    pub(super) load: f64,
    pub(super) file_system: String,
    pub(super) fdatasync_p50_ms: f64,
    pub(super) fdatasync_p99_ms: f64,
}

impl Machine {
    /// Looks at the machine; state will be kept in this folder.
    pub(super) async fn look(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("fdatasync");
        let flushes = tokio::task::spawn_blocking(move || flushes(&file)).await;
        let flushes = match flushes {
            Ok(Ok(flushes)) => flushes,
            Ok(Err(e)) => return Err(Failure::general(format!("cannot write to {}: {e}", folder.display()))),
            Err(_) => return Err(Failure::general("timing the disk failed")),
        };
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            cpu: value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            memory_mb: memory_mb(),
            kernel: line_of("/proc/sys/kernel/osrelease"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            load: load(),
            file_system: file_system(folder),
            fdatasync_p50_ms: flushes.ms(50),
            fdatasync_p99_ms: flushes.ms(99),
        })
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "machine   {} cores, {}, {} MB, Linux {}",
                self.cores, self.cpu, self.memory_mb, self.kernel
            ),
            format!("build     {}, load {:.2} before the run", self.build, self.load),
            format!(
                "disk      {}, fdatasync p50 {:.3} ms, p99 {:.3} ms",
                self.file_system, self.fdatasync_p50_ms, self.fdatasync_p99_ms
            ),
        ];
        if self.build == "debug" {
            lines.push("warning   a debug build; use `cargo run --release -- bench`".to_owned());
        }
        if self.load > self.cores as f64 * 0.25 {
            lines.push("warning   the machine is busy; the numbers are worse than it can do".to_owned());
        }
        if self.file_system == "tmpfs" {
            lines.push("warning   nothing is durable on tmpfs; choose a disk with --state".to_owned());
        }
        lines
    }
}

/// Load of the last minute.
pub(super) fn load() -> f64 {
    line_of("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn flushes(path: &Path) -> io::Result<Times> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let page = [7; PAGE];
    // Written once before, so that a flush does not wait for new blocks either.
    for n in 0..FLUSHES {
        file.write_all_at(&page, n * PAGE as u64)?;
    }
    file.sync_all()?;
    let mut times = Vec::new();
    for n in 0..FLUSHES {
        let begun = Instant::now();
        file.write_all_at(&page, n * PAGE as u64)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    std::fs::remove_file(path)?;
    Ok(Times::new(times))
}

fn memory_mb() -> u64 {
    let total = value_of("/proc/meminfo", "MemTotal");
    let kib = total.and_then(|value| value.strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1_024
}

/// The type of the file system of the longest mount point that the folder is below.
fn file_system(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut best: Option<(&str, &str)> = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(point), Some(kind)) = (fields.next(), fields.next()) else { continue };
        // A later mount on the same point hides the one before.
        if folder.starts_with(point) && best.is_none_or(|(known, _)| point.len() >= known.len()) {
            best = Some((point, kind));
        }
    }
    best.map_or("unknown", |(_, kind)| kind).to_owned()
}

fn line_of(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The value of the first `key : value` line.
fn value_of(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}
