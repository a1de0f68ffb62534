//! The activities through their public interface, over a store in memory, a scripted model and scripted tools.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]
#![expect(clippy::wildcard_enum_match_arm, reason = "anything else is a failed test")]

mod deleted_task;
mod fixture;
mod host;
mod intake;
mod kept_results;
mod model_calls;
mod model_context;
mod model_failures;
mod model_stream;
mod skills;
mod slow_store;
mod sweep_under_load;
mod ticks;
mod tool_calls;
