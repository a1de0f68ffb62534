//! Developer commands: `cargo xtask` lists them.

mod commands;
mod conformance;
mod markdown;
mod metadata;
mod process;
mod session;
mod steps;
mod tidy;

use std::process::ExitCode;

use session::Session;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match commands::dispatch(&Session::from_environment(), &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            steps::say(&format!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}
