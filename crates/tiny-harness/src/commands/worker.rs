//! `tiny-harness worker`: works until it is told to stop.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use crate::{
    activity_log::ActivityLog,
    cli::WorkerArgs,
    commands::serve::{Stopped, stop_signal},
    config::Config,
    failure::Failure,
    faults,
    harness::{Harness, StartOptions, engine::Role},
    output,
};

/// Works on tasks that servers take.
pub(crate) async fn run(
    args: WorkerArgs,
    config: &Config,
    env: BTreeMap<String, String>,
    program: PathBuf,
) -> Result<Stopped, Failure> {
    // Before anything is started: a signal during the start must end in an orderly way as well.
    let stop = stop_signal()?;
    let on_commit = args.faults.crash_at.as_deref().map(faults::crash_hook).transpose()?;
    let options = StartOptions { env, program, on_commit, observer: Some(Arc::new(ActivityLog)) };
    let harness = Harness::start(config, Role::Worker, options).await?;
    let queue = config.temporal.as_ref().map_or("", |temporal| temporal.table.task_queue.as_str());
    output::problem(&format!("worker of {} on queue {queue}", config.server.agent_id));
    let stopped = tokio::select! {
        biased;
        stopped = stop => Ok(stopped),
        () = harness.failed() => Err(Failure::general(
            "the Temporal worker of this process ended by itself, see the log; start the process again",
        )),
    };
    output::problem("stopping; tasks at work go on with other workers, or at the next start");
    if !harness.stop().await {
        tracing::warn!("not everything ended within the grace; it goes on elsewhere");
    }
    stopped
}
