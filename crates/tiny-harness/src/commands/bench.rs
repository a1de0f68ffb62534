//! `tiny-harness bench`: measures this build on this machine.

use std::path::PathBuf;

use crate::{cli::BenchArgs, failure::Failure};

/// Measures.
pub(crate) async fn run(_args: BenchArgs, _program: PathBuf) -> Result<(), Failure> {
    Err(Failure::general("not measured yet"))
}
