//! How the harness runs: store, context, limits, retries, retention and what it reports.

use std::{path::PathBuf, time::Duration};

use harness_telemetry::LogLevel;

use super::{
    checks::{at_least, base_url, each, error_code, if_set, not_blank, range},
    section::{optional, or, required, section},
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
const LONGEST_CALL: Duration = Duration::from_secs(6 * 3_600);

section! {
    /// Where tasks are kept: in this file, or on the server of `[store.postgres]`.
    Store {
        /// The SQLite file. One process owns it at a time; the data of plugins is in `plugin-data` beside it.
        sqlite_path: PathBuf = or("tiny-harness.sqlite3");
    }
}

section! {
    /// What the model is shown, and for how long a task may go on.
    Context {
        /// Tokens of one request to the model; the model's own window counts when it is smaller.
        turn_budget_tokens: u64 = or(12_000_u64), range(1_000, 100_000_000);
        /// Share of the budget at which older conversation is compacted. From 0.1 to 1.
        compaction_fraction: f64 = or(0.75), range(0.1, 1.0);
        /// Events of a workflow's history after which an engine may carry it over into a new one.
        history_event_bound: u32 = or(10_000_u32), range(100, 50_000);
        /// Turns from one wait to the next; then the task fails. From 1 to 10000.
        max_turns: u32 = or(50_u32), range(1, 10_000);
    }
}

section! {
    /// How long one piece of work may take.
    Limits {
        /// One model call. From 1 second to 6 hours.
        model_timeout: Duration = or(Duration::from_secs(120)), range(SECOND, LONGEST_CALL);
        /// One tool call. From 1 second to 6 hours.
        tool_timeout: Duration = or(Duration::from_secs(300)), range(SECOND, LONGEST_CALL);
        /// Every other activity. From 1 second to 6 hours.
        activity_timeout: Duration = or(Duration::from_secs(60)), range(SECOND, LONGEST_CALL);
    }
}

section! {
    /// How failed work is tried again. A policy for one activity replaces the default as a whole: keys that it leaves out
    /// have the values below.
    RetryPolicy {
        /// Wait before the second try.
        initial_interval: Duration = or(SECOND), range(Duration::from_millis(1), DAY);
        /// Each further wait is this many times longer. From 1 to 100.
        backoff_coefficient: f64 = or(2.0), range(1.0, 100.0);
        /// No wait is longer. Not shorter than `initial_interval`.
        maximum_interval: Duration = or(Duration::from_secs(60)), range(Duration::from_millis(1), DAY);
        /// Tries in all, the first one included. From 1 to 1000.
        maximum_attempts: u32 = or(5_u32), range(1, 1_000);
        /// Error codes that are never tried again.
        non_retryable_error_types: Vec<String> = or([]), each(error_code);
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial_interval: SECOND,
            backoff_coefficient: 2.0,
            maximum_interval: Duration::from_secs(60),
            maximum_attempts: 5,
            non_retryable_error_types: Vec::new(),
        }
    }
}

section! {
    /// What one task may use.
    Budget {
        /// Tokens of one task over all its turns, input and output. At the next model call after that it fails. Not set: as
        /// many as it takes.
        task_tokens: Option<u64> = optional(), if_set(range(1, 1_000_000_000_000));
    }
}

section! {
    /// What a model costs, so that tasks can say what they cost. The name is `provider:model`, in quotes. Unit: US dollars
    /// for a million tokens.
    Price {
        /// Input tokens that did not come from a cache.
        input: f64 = required(), range(0.0, 1_000_000.0);
        /// Input tokens that came from the provider's cache. Not set: the price of the others.
        cached: Option<f64> = optional(), if_set(range(0.0, 1_000_000.0));
        /// Output tokens.
        output: f64 = required(), range(0.0, 1_000_000.0);
    }
}

section! {
    /// Rules for giving work to agents.
    AgentsPolicy {
        /// How many delegations may lie above a task. From 1 to 32.
        max_depth: u32 = or(5_u32), range(1, 32);
    }
}

section! {
    /// The regular tick: it polls channels, takes the picture that `/_monitor` shows, and deletes what is past its
    /// retention. See [operations.md](operations.md).
    Heartbeat {
        /// Time between two ticks. At least 1 second.
        interval: Duration = or(Duration::from_secs(30)), at_least(SECOND);
    }
}

section! {
    /// How long what is kept, at least 1 day. What is part of a task goes with it, so those keys have no effect of their
    /// own.
    Retention {
        /// Tasks that have ended, counted from their last change, with everything of theirs.
        tasks: Duration = or(DAY * 30), at_least(DAY);
        /// Plans; part of their task.
        plans: Duration = or(DAY * 30), at_least(DAY);
        /// States of agents; part of their task.
        state: Duration = or(DAY * 30), at_least(DAY);
        /// Messages of channels; part of their task.
        channel_messages: Duration = or(DAY * 30), at_least(DAY);
        /// Audit of incoming messages, counted from the message, also of tasks that go on.
        inbox_audit: Duration = or(DAY * 30), at_least(DAY);
        /// Records of compactions; part of their task.
        compactions: Duration = or(DAY * 30), at_least(DAY);
        /// Push notification configurations, counted from their last delivery, also of tasks that go on.
        push_configs: Duration = or(DAY * 30), at_least(DAY);
    }
}

section! {
    /// What the harness reports about itself.
    O11y {
        /// Least level of the log lines on standard error.
        log_level: LogLevel = or(LogLevel::Info);
        /// Name of this service in traces.
        service_name: String = or("tiny-harness"), not_blank;
        /// Where traces are sent by OTLP over HTTP.
        otlp_endpoint: Option<String> = optional(), if_set(base_url);
        /// Langfuse server; used when both Langfuse keys are set.
        langfuse_host: String = or("https://cloud.langfuse.com"), base_url;
        /// File that spans are appended to.
        trace_file: Option<PathBuf> = optional();
    }
}
