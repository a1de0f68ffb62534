//! When a server that keeps failing may be started again. Pure: time is an input.

use std::time::Duration;

use tokio::time::Instant;

/// Wait after the second failure in a row; doubles with each further one.
const BACKOFF: Duration = Duration::from_millis(100);
/// Longest wait.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Counts sessions in a row that were of no use: no connection, or an end before the first answer.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    failures: u32,
    not_before: Option<Instant>,
}

impl Restarts {
    /// A session answered a call before it ended.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// A session could not be opened, or ended before it answered a call. The first failure costs no wait, so that a
    /// call that may be repeated is repeated at once.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.checked_sub(2);
        self.not_before =
            doublings.map(|n| now + BACKOFF.saturating_mul(2_u32.saturating_pow(n)).min(BACKOFF_MAX));
    }

    /// How long the next start has to wait.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_end_with_success() {
        let now = Instant::now();
        let mut restarts = Restarts::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            restarts.failed(now);
            waits.push(restarts.wait(now).as_millis());
        }
        assert_eq!(waits[..5], [0, 100, 200, 400, 800]);
        assert_eq!(waits[11], 30_000);
        for _ in 0..100 {
            restarts.failed(now);
        }
        assert_eq!(restarts.wait(now), BACKOFF_MAX);
        restarts.succeeded();
        assert_eq!(restarts.wait(now), Duration::ZERO);
    }
}
