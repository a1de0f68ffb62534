//! `cargo xtask ci`: exactly what CI runs.

use super::{Command, no_arguments, verify};
use crate::session::{Outcome, Session};

pub(super) const COMMAND: Command =
    Command { name: "ci", arguments: "", about: "verify, with nothing skipped; exactly what CI runs", run };

fn run(session: &Session, arguments: &[String]) -> Outcome {
    no_arguments(COMMAND.name, arguments)?;
    verify::all(&session.strict(), COMMAND.name)
}
