//! The product with one addition: it remembers when a commit became durable, before anybody is told of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use harness_store::{CommitHook, CommitPhase};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

use super::monotonic_ns;
use crate::{
    failure::Failure,
    harness::{Harness, StartOptions, engine::Role},
    output,
};

/// Commits of a server so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::bench) struct Stamp {
    /// How many.
    pub(in crate::commands::bench) commits: u64,
    /// When the newest became durable. Unit: nanoseconds of the machine's monotonic clock.
    pub(in crate::commands::bench) at_ns: u64,
}

impl Stamp {
    /// Reads what the server answers with.
    pub(in crate::commands::bench) fn parse(line: &str) -> Option<Self> {
        let (commits, at_ns) = line.trim().split_once(' ')?;
        Some(Self { commits: commits.parse().ok()?, at_ns: at_ns.parse().ok()? })
    }
}

/// Serves, and answers every line of the input with a stamp, until the input ends.
pub(super) async fn run(config: &Path, program: PathBuf) -> Result<(), Failure> {
    let config = crate::load_config(Some(config), &BTreeMap::new())?;
    let newest = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let stamps = Arc::clone(&newest);
    let on_commit: CommitHook = Arc::new(move |phase, number| {
        if phase == CommitPhase::After {
            stamps.1.store(monotonic_ns(), Ordering::Release);
            stamps.0.store(number, Ordering::Release);
        }
    });
    let options = StartOptions { env: BTreeMap::new(), program, on_commit: Some(on_commit), observer: None };
    let harness = Harness::start(&config, Role::ServerAndWorker, options).await?;
    output::problem(&format!("serving stamped at {}", harness.base_url));
    let (mut asked, mut answers) = (BufReader::new(stdin()).lines(), stdout());
    while let Ok(Some(_)) = asked.next_line().await {
        let stamp = format!("{} {}\n", newest.0.load(Ordering::Acquire), newest.1.load(Ordering::Acquire));
        if answers.write_all(stamp.as_bytes()).await.is_err() || answers.flush().await.is_err() {
            break;
        }
    }
    harness.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_read_whole_or_not_at_all() {
        assert_eq!(Stamp::parse("7 123456\n"), Some(Stamp { commits: 7, at_ns: 123_456 }));
        assert_eq!(Stamp::parse("7\n"), None);
    }
}
