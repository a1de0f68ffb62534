//! `tiny-harness schedules`: the schedule by which an agent on Temporal ticks.

use crate::{cli::SchedulesCommand, config::Config, failure::Failure};

/// Runs one of the commands.
pub(crate) async fn run(command: &SchedulesCommand, config: &Config) -> Result<(), Failure> {
    match command {
        SchedulesCommand::Delete => delete(config).await,
    }
}

#[cfg(not(feature = "temporal"))]
#[expect(clippy::unused_async, reason = "the other build asks a server")]
async fn delete(_config: &Config) -> Result<(), Failure> {
    Err(no_schedule())
}

fn no_schedule() -> Failure {
    Failure::usage(
        "the local engine has no schedule: its ticks are a timer of `serve` and end with it; \
         `schedules` is for an agent with [temporal]",
    )
}

#[cfg(feature = "temporal")]
async fn delete(config: &Config) -> Result<(), Failure> {
    use crate::{
        config::TemporalMode,
        harness::temporal::{self, Visit},
        output,
    };

    let Some(table) = &config.temporal else { return Err(no_schedule()) };
    if table.table.mode == TemporalMode::Embedded && !table.embedded.persist {
        return Err(Failure::usage(
            "an embedded Temporal with `persist = false` keeps nothing between two runs: its schedule ends with `serve` \
             (temporal.embedded.persist)",
        ));
    }
    let deleted = temporal::visit(config, table, async |visit| match visit {
        Visit::Nothing => Ok(false),
        Visit::Server(address) => harness_engine_temporal::delete_heartbeat(address, "")
            .await
            .map_err(|error| Failure::general(format!("[{}] {error}", error.code()))),
    })
    .await?;
    if deleted {
        output::line("the heartbeat schedule is deleted; the next worker that starts makes it again");
        Ok(())
    } else {
        Err(Failure::general("there is no heartbeat schedule"))
    }
}
