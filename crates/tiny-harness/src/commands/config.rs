//! `tiny-harness config`: checks or shows the configuration.

use crate::{cli::ConfigCommand, config::Config, output};

/// The configuration was read already; problems ended the program before this.
pub(crate) fn run(command: &ConfigCommand, config: &Config) {
    match command {
        ConfigCommand::Check => output::line("the configuration is valid"),
        ConfigCommand::Show => output::text(&config.show()),
    }
}
