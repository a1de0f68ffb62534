//! Settings of a task, pinned when it starts so that a replay never depends on the configuration of the day.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

/// What governs the course of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskSettings {
    /// Turns from one wait to the next; then the task fails.
    pub max_turns: u32,
    /// How failed activities are retried.
    pub retries: Retries,
    /// Tokens a task may use over all its turns, input and output; then it fails. `None`: as many as it takes.
    #[serde(default)]
    pub token_budget: Option<u64>,
    /// Prices by `provider:model`.
    #[serde(default)]
    pub prices: BTreeMap<String, ModelPrice>,
    /// From start to result of one model call. Unit: milliseconds.
    pub model_timeout_ms: u64,
    /// From start to result of one tool call. Unit: milliseconds.
    pub tool_timeout_ms: u64,
    /// From start to result of every other activity. Unit: milliseconds.
    pub activity_timeout_ms: u64,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            max_turns: 50,
            retries: Retries::default(),
            token_budget: None,
            prices: BTreeMap::new(),
            model_timeout_ms: 120_000,
            tool_timeout_ms: 300_000,
            activity_timeout_ms: 60_000,
        }
    }
}

/// What a model costs. Unit: millionths of a US dollar for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPrice {
    /// Input tokens that were not cached.
    pub input: u64,
    /// Input tokens that came from the cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl ModelPrice {
    /// What a call cost, in millionths of a US dollar, rounded down.
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> u64 {
        let parts = [
            (input.saturating_sub(cached), self.input),
            (cached.min(input), self.cached),
            (output, self.output),
        ];
        let sum: u128 = parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        u64::try_from(sum / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// Retry policies by activity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retries {
    /// For activities without a policy of their own.
    pub default: RetryPolicy,
    /// By activity name without its version: `invoke_model`.
    #[serde(default)]
    pub per_activity: BTreeMap<String, RetryPolicy>,
}

impl Retries {
    /// The policy of an activity, named with or without its version.
    pub fn policy(&self, activity: &str) -> &RetryPolicy {
        let bare = activity.split('.').next().unwrap_or(activity);
        self.per_activity.get(bare).unwrap_or(&self.default)
    }
}

/// How one activity is retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Wait before the second try. Unit: milliseconds.
    pub initial_interval_ms: u64,
    /// Each further wait is this many times longer.
    pub backoff_coefficient: f64,
    /// No wait is longer. Unit: milliseconds.
    pub maximum_interval_ms: u64,
    /// Tries in all, the first one included.
    pub maximum_attempts: u32,
    /// Error codes that are never retried.
    #[serde(default)]
    pub non_retryable_error_types: Vec<String>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial_interval_ms: 1_000,
            backoff_coefficient: 2.0,
            maximum_interval_ms: 60_000,
            maximum_attempts: 5,
            non_retryable_error_types: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// The wait after `attempt` failed tries: exponential, capped, spread by ±20 % with `seed` as the dice.
    pub fn delay(&self, attempt: u32, seed: &str) -> Duration {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let raw = self.initial_interval_ms as f64 * self.backoff_coefficient.powi(exponent);
        let capped = raw.min(self.maximum_interval_ms as f64).max(0.0);
        let spread = 0.8 + 0.4 * (f64::from(dice(seed, attempt)) / f64::from(u32::MAX));
        Duration::from_millis((capped * spread) as u64)
    }
}

/// A fair-enough number made from text: FNV-1a. The same text gives the same number in every build.
fn dice(seed: &str, attempt: u32) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in seed.bytes().chain(attempt.to_le_bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_are_capped_and_are_spread_the_same_way_each_time() {
        let policy = RetryPolicy::default();
        for attempt in 1..12 {
            let nominal = (1_000.0 * 2_f64.powi(attempt as i32 - 1)).min(60_000.0);
            let delay = policy.delay(attempt, "act-7").as_millis() as f64;
            assert!(delay >= nominal * 0.79 && delay <= nominal * 1.21, "{attempt}: {delay}");
            assert_eq!(policy.delay(attempt, "act-7"), policy.delay(attempt, "act-7"));
        }
        assert_ne!(policy.delay(1, "act-7"), policy.delay(1, "act-8"));
    }

    #[test]
    fn prices_tell_cached_tokens_apart() {
        let price = ModelPrice { input: 2_000_000, cached: 200_000, output: 8_000_000 };
        assert_eq!(price.cost(1_000, 600, 100), 800 + 120 + 800);
        assert_eq!(price.cost(10, 600, 0), 2, "more cached than input counts as all cached");
    }

    #[test]
    fn an_override_replaces_the_whole_policy() {
        let mut retries = Retries::default();
        let own = RetryPolicy { maximum_attempts: 1, ..RetryPolicy::default() };
        retries.per_activity.insert("invoke_model".to_owned(), own);
        assert_eq!(retries.policy("invoke_model.v1").maximum_attempts, 1);
        assert_eq!(retries.policy("intake.v1").maximum_attempts, 5);
    }
}
