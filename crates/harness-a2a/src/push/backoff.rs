//! When a delivery is tried again.

use std::time::Duration;

use harness_model::BlockId;

/// Repetition of deliveries that fail: the wait doubles, up to a limit, spread by a fifth in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushRetry {
    /// Tries of one delivery; after that the configuration is given up. At least one.
    pub attempts_max: u32,
    /// Wait after the first try.
    pub first: Duration,
    /// Longest wait.
    pub longest: Duration,
}

impl Default for PushRetry {
    /// Twelve tries over about twenty minutes.
    fn default() -> Self {
        Self { attempts_max: 12, first: Duration::from_secs(1), longest: Duration::from_secs(300) }
    }
}

impl PushRetry {
    /// The wait after `attempt` failed tries (from 1), with a text as the dice.
    pub(super) fn wait_after(&self, attempt: u32, dice: &str) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let even = self.first.saturating_mul(doubled).min(self.longest);
        even.mul_f64(0.8 + 0.4 * f64::from(throw(dice, attempt)) / f64::from(u8::MAX))
    }
}

/// A number that looks random and is always the same for the same delivery and try.
fn throw(dice: &str, attempt: u32) -> u8 {
    let digest = BlockId::of(format!("{dice}/{attempt}").as_bytes());
    u8::from_str_radix(&digest.as_str()[..2], 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_differ() {
        let retry = PushRetry::default();
        for (attempt, even) in [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (11, 300), (u32::MAX, 300)] {
            let wait = retry.wait_after(attempt, "t:c/7").as_secs_f64();
            let even = f64::from(even);
            assert!((0.8 * even..=1.2 * even).contains(&wait), "{attempt}: {wait}");
        }
        assert_eq!(retry.wait_after(4, "a"), retry.wait_after(4, "a"));
        let waits: std::collections::BTreeSet<_> =
            (0..50).map(|n| retry.wait_after(4, &format!("t:{n}/7"))).collect();
        assert!(waits.len() > 30, "receivers that failed together are not called together again");
    }
}
