//! `tiny-harness serve`: serves until it is told to stop.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    activity_log::ActivityLog,
    cli::ServeArgs,
    config::{Config, TemporalMode},
    failure::Failure,
    faults,
    harness::{Harness, StartOptions, engine::Role},
    output,
};

/// How a server was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// By SIGTERM: an orderly end.
    Terminated,
    /// By Ctrl-C.
    Interrupted,
}

/// Serves. Running tasks go on at the next start.
pub(crate) async fn run(
    args: ServeArgs,
    config: &Config,
    env: BTreeMap<String, String>,
    program: PathBuf,
) -> Result<Stopped, Failure> {
    // Before anything is started: a signal during the start must end in an orderly way as well.
    let stop = stop_signal()?;
    raise_descriptor_limit();
    let on_commit = args.faults.crash_at.as_deref().map(faults::crash_hook).transpose()?;
    let options = StartOptions { env, program, on_commit, observer: Some(Arc::new(ActivityLog)) };
    let harness = Harness::start(config, role(&args, config), options).await?;
    output::problem(&format!("serving {} at {}", config.card.name, harness.base_url));
    let stopped = tokio::select! {
        biased;
        stopped = stop => Ok(stopped),
        () = harness.failed() => Err(Failure::general(
            "the Temporal worker of this process ended by itself, see the log; start the process again",
        )),
    };
    output::problem("stopping; tasks at work go on at the next start");
    if !harness.stop().await {
        tracing::warn!("not everything ended within the grace; it goes on at the next start");
    }
    stopped
}

/// Only with a server elsewhere can there be workers elsewhere.
fn role(args: &ServeArgs, config: &Config) -> Role {
    match &config.temporal {
        Some(temporal) if temporal.table.mode == TemporalMode::Remote && !args.with_worker => Role::Server,
        Some(_) | None => {
            tracing::info!("this process works on tasks as well");
            Role::ServerAndWorker
        }
    }
}

/// Each subscriber holds a connection, and the usual soft limit of open files is smaller than a crowd. The hard limit is
/// what the operator decided; a system that refuses leaves things as they are.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// Resolves when the process is asked to stop.
pub(crate) fn stop_signal() -> Result<impl Future<Output = Stopped>, Failure> {
    let failed = |e: std::io::Error| Failure::general(format!("cannot listen for signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => Stopped::Terminated,
            _ = interrupt.recv() => Stopped::Interrupted,
        }
    })
}
