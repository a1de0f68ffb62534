//! `cargo xtask bench`: every benchmark of the workspace, one after the other.

use super::Command;
use crate::{
    metadata::Metadata,
    process::{self, CARGO},
    session::{Failure, Outcome, Session},
    steps,
};

pub(super) const COMMAND: Command = Command {
    name: "bench",
    arguments: "[filter]",
    about: "run the benchmarks, or those whose bench target holds the filter",
    run,
};

fn run(session: &Session, arguments: &[String]) -> Outcome {
    let filter = arguments.first().map_or("", String::as_str);
    let benches: Vec<(String, String)> = Metadata::load(session)?
        .members()
        .flat_map(|package| package.benches.iter().map(|bench| (package.name.clone(), bench.clone())))
        .filter(|(_, bench)| bench.contains(filter))
        .collect();
    if benches.is_empty() {
        return Err(Failure::new(format!("no bench target holds {filter:?}")));
    }
    for (package, bench) in &benches {
        steps::say(&format!("==> {package}: {bench}"));
        process::run(session, CARGO, &["bench", "--package", package, "--bench", bench])?;
    }
    Ok(())
}
