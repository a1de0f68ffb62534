//! Asks an agent of this installation to purge a task.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Url;
use serde_json::json;

use super::{ClientError, ClientLimits, OwnRequests, http};
use crate::address_guard;

/// Time for the answer: the agent ends the task first.
const PURGE_TIME: Duration = Duration::from_secs(30);

/// Has the agent at `url` purge a task, and returns how many rows of each kind it deleted. Repeating it is safe.
///
/// The process must have installed a TLS provider.
/// Errors: `Status` with 404 when the agent does not take the proof: it has another key or another base URL.
pub async fn purge_task(
    url: &str,
    task_id: &str,
    own: &OwnRequests,
) -> Result<BTreeMap<String, u64>, ClientError> {
    let limits = ClientLimits::default();
    let body = json!({ "task": task_id }).to_string();
    let target = format!("{}/_purge", url.trim_end_matches('/'));
    let target = Url::parse(&target).map_err(ClientError::invalid_request)?;
    let client = address_guard::client_builder(limits.connect).build().map_err(ClientError::unreachable)?;
    let (name, value) = own.proof("POST", &target, body.as_bytes());
    let exchange = async {
        let request = client.post(target).header(name, value).body(body);
        let sent = request.send().await.map_err(ClientError::unreachable)?;
        let response = http::accepted(sent, limits.response_bytes_max).await?;
        http::read_capped(response, limits.response_bytes_max).await
    };
    let bytes = tokio::time::timeout(PURGE_TIME, exchange)
        .await
        .map_err(|_| ClientError::TimedOut { time: PURGE_TIME })??;
    let purged: Purged = serde_json::from_slice(&bytes).map_err(ClientError::invalid_response)?;
    Ok(purged.deleted)
}

#[derive(serde::Deserialize)]
struct Purged {
    deleted: BTreeMap<String, u64>,
}
