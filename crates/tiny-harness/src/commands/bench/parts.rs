//! Processes of a measurement that are no product: the floor, and a server that tells when it commits.

mod echo;
mod floor;
mod stamped;

use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

pub(super) use floor::{ECHO, EVENT, FIRST, FOLLOW, TASK};
pub(super) use stamped::Stamp;

/// What a process of a measurement does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// The least that could do the same work with the same durability.
    Floor(Floor),
    /// Answers every line with itself: the far side of a tool call at the floor.
    Echo,
    /// The product, which tells on demand when its last commit became durable.
    Stamped {
        /// Its configuration.
        config: PathBuf,
    },
}

/// How much the floor writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Floor {
    /// Its store.
    pub(super) store: PathBuf,
    /// Durable commits of one task.
    pub(super) commits: u64,
    /// Bytes of each.
    pub(super) bytes: usize,
}

impl Part {
    /// As an argument of this program.
    pub(super) fn argument(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map_err(|e| Failure::general(format!("cannot name a part: {e}")))
    }
}

/// Runs a part until it is told to stop.
pub(super) async fn run(argument: &str, program: PathBuf) -> Result<(), Failure> {
    let part = serde_json::from_str(argument)
        .map_err(|e| Failure::usage(format!("--part is for the benchmark's own use: {e}")))?;
    match part {
        Part::Floor(floor) => floor::run(floor, program).await,
        Part::Echo => echo::run().await,
        Part::Stamped { config } => stamped::run(&config, program).await,
    }
}

/// A time that all processes of the machine agree on. Unit: nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    seconds * 1_000_000_000 + nanos
}
