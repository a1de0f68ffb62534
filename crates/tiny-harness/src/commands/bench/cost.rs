//! What a task of the product writes: counted, so that the floor writes exactly as much.

use serde::Serialize;

use super::{
    child::Child,
    client::Client,
    lab::{Lab, Setup},
    load,
    parts::Stamp,
};
use crate::failure::Failure;

/// Tasks before the counting begins: what a store takes only once must not count.
const FIRST_TASKS: usize = 10;

/// What one task writes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cost {
    /// Commits, each durable before the next begins.
    pub(super) commits: u64,
    /// Bytes that the store grows by.
    pub(super) bytes: u64,
}

impl Cost {
    pub(super) fn bytes_per_commit(self) -> usize {
        usize::try_from(self.bytes / self.commits.max(1)).unwrap_or(usize::MAX)
    }

    /// Runs some tasks and counts.
    pub(super) async fn find(lab: &Lab, setup: &Setup<'_>) -> Result<Self, Failure> {
        let server = lab.serve_stamped(setup).await?;
        run(&server, "first", FIRST_TASKS).await?;
        server.stop().await?;
        let bytes_before = bytes(lab, setup)?;
        let mut server = lab.serve_stamped(setup).await?;
        let before = stamp(&mut server).await?;
        run(&server, "counted", lab.effort.counted).await?;
        let after = stamp(&mut server).await?;
        server.stop().await?;
        let count = lab.effort.counted as u64;
        Ok(Self {
            // Rounded: a chunk of an answer that was slow once is no cost of every task.
            commits: (after.commits - before.commits + count / 2) / count,
            bytes: bytes(lab, setup)?.saturating_sub(bytes_before) / count,
        })
    }
}

/// The commits of a server that counts them.
pub(super) async fn stamp(server: &mut Child) -> Result<Stamp, Failure> {
    let line = server.question().await?;
    Stamp::parse(&line)
        .ok_or_else(|| Failure::general("a server that counts its commits does not say how many"))
}

async fn run(server: &Child, prefix: &str, tasks: usize) -> Result<(), Failure> {
    let mut client = Client::connect(server.address).await?;
    for number in 0..tasks {
        load::task(&mut client, format!("{prefix}-{number}")).await?;
    }
    Ok(())
}

/// Size of the store of a server that has ended: all of it is in the one file then.
fn bytes(lab: &Lab, setup: &Setup<'_>) -> Result<u64, Failure> {
    let path = lab.store(setup.name)?;
    let found = std::fs::metadata(&path);
    found
        .map(|file| file.len())
        .map_err(|e| Failure::general(format!("cannot look at {}: {e}", path.display())))
}
