//! `cargo xtask readme`: runs the commands that README.md and the documents promise.

use std::{process::Stdio, time::Duration};

use super::{Command, no_arguments};
use crate::{
    markdown::{self, Block},
    metadata::Metadata,
    process::{self, CARGO},
    session::{Failure, Outcome, Session},
    steps,
    tidy::Tree,
};

pub(super) const COMMAND: Command = Command {
    name: "readme",
    arguments: "",
    about: "run the blocks marked ```sh run in README.md and the other documents",
    run,
};

/// How long one block may take, builds included.
const BLOCK_LIMIT: Duration = Duration::from_mins(15);

/// Commands that would run this one again.
const RECURSIVE: &[&str] = &["cargo verify", "cargo xtask verify", "cargo xtask ci", "cargo xtask readme"];

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    run_blocks(session)
}

/// Runs every block, with the built binary on the path as for somebody who installed it.
pub(super) fn run_blocks(session: &Session) -> Outcome {
    let tree = Tree::read(&session.root)?;
    let blocks: Vec<Block> =
        tree.with_extension("md").flat_map(|file| markdown::runnable(&file.path, &file.text)).collect();
    if blocks.is_empty() {
        steps::say("    no document has a block marked ```sh run");
        return Ok(());
    }
    for block in &blocks {
        check_block(block)?;
    }
    process::run(session, CARGO, &["build", "--package", "tiny-harness"])?;
    let target = Metadata::load(session)?.target_directory;
    for block in &blocks {
        run_block(session, block, &format!("{target}/debug"))?;
    }
    Ok(())
}

/// Runs one block as a strict script: the first command that fails ends it.
fn run_block(session: &Session, block: &Block, binaries: &str) -> Outcome {
    steps::say(&format!("    {}:{}", block.path, block.line));
    let script = format!("set -euo pipefail\nexport PATH=\"$BUILT_BINARIES:$PATH\"\n{}", block.text);
    let mut bash = process::command(session, "bash");
    bash.args(["-c", &script]).env("BUILT_BINARIES", binaries).stdin(Stdio::null());
    let status = process::run_bounded(session, &mut bash, BLOCK_LIMIT)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("the block at {}:{} ended with {status}", block.path, block.line)))
}

fn check_block(block: &Block) -> Outcome {
    match RECURSIVE.iter().find(|command| block.text.contains(**command)) {
        None => Ok(()),
        Some(command) => Err(Failure::new(format!(
            "{}:{}: a block with `{command}` cannot be marked run: it would run itself",
            block.path, block.line
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        Block { path: "README.md".to_owned(), line: 1, text: text.to_owned() }
    }

    #[test]
    fn a_block_that_runs_itself_is_refused() {
        assert!(check_block(&block("cargo verify\n")).is_err());
        assert!(check_block(&block("cargo demo --auto\n")).is_ok());
    }

    #[test]
    fn a_block_finds_the_binaries_and_fails_with_its_first_command() {
        let session = Session::from_environment();
        let outcome = |text: &str| run_block(&session, &block(text), "/built");
        assert!(outcome("test \"${PATH%%:*}\" = /built\ntest -f Cargo.toml\n").is_ok());
        assert!(outcome("false\ntrue\n").is_err());
        assert!(outcome("false | true\n").is_err());
    }
}
