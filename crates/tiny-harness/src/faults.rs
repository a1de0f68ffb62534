//! Faults on purpose, for crash tests: this process kills itself right before or after one commit of its store.

use std::sync::Arc;

use harness_store::{CommitHook, CommitPhase};

use crate::failure::Failure;

/// Reads `before:N` or `after:N`. The hook kills the process as `kill -9` would: no destructor, no flush, no goodbye.
pub(crate) fn crash_hook(text: &str) -> Result<CommitHook, Failure> {
    let wrong = || Failure::usage("--crash-at takes before:N or after:N, counting commits from 1");
    let (when, number) = text.split_once(':').ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let wanted = match when {
        "before" => CommitPhase::Before,
        "after" => CommitPhase::After,
        _ => return Err(wrong()),
    };
    Ok(Arc::new(move |phase, commit| {
        if phase == wanted && commit == number {
            // A signal to oneself that cannot be handled; nothing after it runs.
            let _dead =
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }))
}
