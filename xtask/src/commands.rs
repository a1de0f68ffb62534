//! The commands, one file each.

mod bench;
mod check;
mod ci;
mod conformance;
mod demo;
mod docs;
mod test;
mod tidy;
mod tools;
mod verify;

use crate::{
    session::{Failure, Outcome, Session},
    steps,
};

/// One developer command.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&Session, &[String]) -> Outcome,
}

const COMMANDS: &[Command] = &[
    bench::COMMAND,
    check::COMMAND,
    ci::COMMAND,
    conformance::COMMAND,
    demo::COMMAND,
    docs::COMMAND,
    test::COMMAND,
    tidy::COMMAND,
    tools::COMMAND,
    verify::COMMAND,
];

/// Names of all commands.
pub(crate) fn names() -> Vec<&'static str> {
    COMMANDS.iter().map(|command| command.name).collect()
}

/// Runs the command that the arguments name; without any, lists the commands.
pub(crate) fn dispatch(session: &Session, arguments: &[String]) -> Outcome {
    let Some((name, rest)) = arguments.split_first() else {
        list();
        return Ok(());
    };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(session, rest),
        None if matches!(name.as_str(), "help" | "--help" | "-h") => {
            list();
            Ok(())
        }
        None => Err(Failure::new(format!("no command {name:?}; there are: {}", names().join(", ")))),
    }
}

fn list() {
    steps::answer("usage: cargo xtask COMMAND [ARGUMENTS]\n");
    for command in COMMANDS {
        let usage = format!("{} {}", command.name, command.arguments);
        steps::answer(&format!("  {usage:<18} {}", command.about));
    }
}

/// Refuses arguments that a command does not take.
fn no_arguments(command: &str, arguments: &[String]) -> Outcome {
    match arguments.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(format!("{command} takes no arguments, and got {first:?}"))),
    }
}
