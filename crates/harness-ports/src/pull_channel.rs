//! Channels that have to be asked for what was said.

use futures::future::BoxFuture;
use harness_model::CodedError;

/// A channel that is polled by the tick, because it cannot call.
pub trait PullChannel: Send + Sync {
    /// Names the channel in the log.
    fn id(&self) -> &str;

    /// Fetches what was said since the last time and delivers each message to its task, as a message of its sender.
    /// Returns how many were delivered. What was delivered is not delivered again: message ids make repeats harmless.
    ///
    /// Time-boxed by the caller, which drops the future; what was not delivered by then comes with the next poll.
    /// Errors: for the log; they concern this channel and this poll only.
    fn poll(&self) -> BoxFuture<'_, Result<u64, CodedError>>;
}
