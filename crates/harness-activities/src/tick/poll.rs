//! `poll_channels`: asks the channels that cannot call.

use std::{sync::Arc, time::Duration};

use harness_ports::PullChannel;

/// Time that one channel may take.
const CHANNEL_TIME: Duration = Duration::from_secs(20);

/// Polls every channel at the same time; one that fails keeps no other from being heard. Returns how many messages came and
/// how many channels failed.
pub(super) async fn run(channels: &[Arc<dyn PullChannel>]) -> Result<(u64, u64), String> {
    let polls = channels.iter().map(|channel| async {
        let problem = match tokio::time::timeout(CHANNEL_TIME, channel.poll()).await {
            Ok(Ok(messages)) => return Some(messages),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {CHANNEL_TIME:?}"),
        };
        tracing::warn!(channel = channel.id(), problem, "a channel could not be polled");
        None
    });
    let polled = futures::future::join_all(polls).await;
    let failed = polled.iter().filter(|messages| messages.is_none()).count() as u64;
    Ok((polled.into_iter().flatten().sum(), failed))
}
