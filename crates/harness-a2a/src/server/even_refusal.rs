//! Refusals whose time tells nothing: an answer that there is no such task leaves at a whole step after its request.
//!
//! Finding out that a task is somebody else's takes a little longer than finding none, by how much depends on the task.
//! Whoever can measure that knows which tasks there are.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};

/// Far more than finding out takes; a refusal that takes longer all the same leaves at the step after.
const STEP: Duration = Duration::from_millis(5);
/// Refusals that wait on threads at once; further ones wait for their turn first.
const WAITING_MAX: usize = 64;

/// Holds refusals back.
#[derive(Clone, Debug)]
pub(crate) struct EvenRefusals {
    threads: Arc<Semaphore>,
}

impl EvenRefusals {
    pub(crate) fn new() -> Self {
        Self { threads: Arc::new(Semaphore::new(WAITING_MAX)) }
    }

    /// Waits for the next whole step after `begun`.
    ///
    /// On a thread, because the runtime's own timers end a number of whole milliseconds after they are set: they would
    /// pass on what they are to hide.
    pub(super) async fn hold(&self, begun: Instant) {
        // It is never closed.
        let Ok(permit) = Arc::clone(&self.threads).acquire_owned().await else { return };
        let slept = spawn_blocking(move || {
            #[expect(clippy::disallowed_methods, reason = "time is what is waited for here")]
            std::thread::sleep(next_step(begun.elapsed()).saturating_sub(begun.elapsed()));
            drop(permit);
        });
        // It fails only while the runtime stops; then nobody measures anything.
        slept.await.unwrap_or_default();
    }
}

/// The first whole step that is not before this.
fn next_step(elapsed: Duration) -> Duration {
    let steps = elapsed.as_nanos().div_ceil(STEP.as_nanos()).max(1);
    STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_leave_at_whole_steps() {
        for (micros, millis) in [(0, 5), (1, 5), (4_999, 5), (5_000, 5), (5_001, 10), (12_345, 15)] {
            assert_eq!(next_step(Duration::from_micros(micros)), Duration::from_millis(millis), "{micros}");
        }
    }
}
