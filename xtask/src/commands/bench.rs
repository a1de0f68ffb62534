//! `cargo xtask bench`: every benchmark, one after the other, and then the product against its own numbers.

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
    about: "run the benchmarks, or those whose crate or bench target holds the filter",
    run,
};

/// The crate whose binary measures the whole product with `bench`.
const PRODUCT: &str = "tiny-harness";

fn run(session: &Session, arguments: &[String]) -> Outcome {
    let filter = arguments.first().map_or("", String::as_str);
    let metadata = Metadata::load(session)?;
    let targets = metadata
        .members()
        .flat_map(|package| package.benches.iter().map(|bench| (package.name.as_str(), bench.as_str())));
    let wanted: Vec<(&str, &str)> =
        targets.filter(|(package, bench)| package.contains(filter) || bench.contains(filter)).collect();
    let product_is_wanted = PRODUCT.contains(filter);
    if wanted.is_empty() && !product_is_wanted {
        return Err(Failure::new(format!("no crate and no bench target holds {filter:?}")));
    }
    for (package, bench) in wanted {
        steps::say(&format!("==> {package}: {bench}"));
        process::run(session, CARGO, &["bench", "--package", package, "--bench", bench])?;
    }
    if product_is_wanted {
        steps::say(&format!("==> {PRODUCT} bench"));
        process::run(session, CARGO, &["run", "--release", "--package", PRODUCT, "--", "bench"])?;
    }
    Ok(())
}
