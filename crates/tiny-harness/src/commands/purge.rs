//! `tiny-harness tasks purge`: deletes a task of this installation.

use std::{collections::BTreeMap, sync::Arc};

use harness_a2a::{ClientError, OwnRequests, purge_task};
use harness_model::{TaskId, codes, one_line};
use harness_ports::{Clock, DeleteWhen, Store, StoreError, Write, WriteBatch};
use harness_store::PostgresUse;

use crate::{
    config::Config,
    failure::Failure,
    harness::{self, OpenStore},
    output, peer,
    system::SystemClock,
};

/// Deletes everything of a task and prints how many rows of each kind there were. A server that owns the store does it
/// itself, since it may be at work on the task; otherwise it is done here.
pub(crate) async fn run(config: &Config, task: &str, url: Option<&str>) -> Result<(), Failure> {
    let path = &config.store.sqlite_path;
    if config.postgres.is_none() && !path.exists() {
        let text = format!(
            "[{}] there is no store at {}; name the configuration of the agent with --config",
            codes::STORE_UNREADABLE,
            path.display()
        );
        return Err(Failure::general(text));
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    // Other processes may be at work on a store that they share. Whoever has one alone does it itself.
    let store = if harness::store_is_shared(config) {
        Some(OpenStore::open(config, PostgresUse::Shared, None).await?)
    } else {
        OpenStore::open_unused(config).await?
    };
    let (deleted, ended) = match store {
        Some(store) => {
            let deleted = here(&*store.shared(), &*clock, task).await;
            store.close().await;
            let deleted = deleted.map_err(|error| Failure::general(format!("[{}] {error}", error.code())))?;
            (deleted, end_workflow(config, task).await)
        }
        None => (by_server(config, clock, task, url).await?, Ok(())),
    };
    if deleted.is_empty() {
        output::line(&format!("there is nothing of task {}", one_line(task)));
    }
    for (kind, rows) in deleted {
        output::line(&format!("{:<16}  {rows}", one_line(&kind)));
    }
    ended.map_err(|failure| {
        let text = "the task is deleted; what drives it in Temporal is not ended, and ends by itself when it next looks \
                    for its task. Purge again to end it now";
        Failure { lines: [vec![format!("error: {text}")], failure.lines].concat(), ..failure }
    })
}

/// Ends the Temporal workflow of a task. The rows are gone by now: whatever wakes the workflow finds nothing, and nobody
/// begins it anew. The other way round, a process that finds the task unfinished would.
#[cfg(feature = "temporal")]
async fn end_workflow(config: &Config, task: &str) -> Result<(), Failure> {
    use harness_model::WorkflowId;

    use crate::harness::temporal::{self, Visit};

    let Some(table) = &config.temporal else { return Ok(()) };
    temporal::visit(config, table, async |visit| match visit {
        Visit::Nothing => Ok(()),
        Visit::Server(address) => {
            let ended = harness_engine_temporal::terminate(address, "", &WorkflowId::new(task)).await;
            ended.map(drop).map_err(|error| Failure::general(format!("[{}] {error}", error.code())))
        }
    })
    .await
}

#[cfg(not(feature = "temporal"))]
#[expect(clippy::unused_async, reason = "the other build asks a server")]
async fn end_workflow(_config: &Config, _task: &str) -> Result<(), Failure> {
    Ok(())
}

/// Nobody is at work on the task, or what they still do is not kept: activities write only what has a task.
async fn here(store: &dyn Store, clock: &dyn Clock, task: &str) -> Result<BTreeMap<String, u64>, StoreError> {
    let write = Write::DeleteTask { task_id: TaskId::from(task), when: DeleteWhen::Always };
    let deleted = store.commit(WriteBatch::new(clock.now(), vec![write])).await?.deleted;
    Ok(deleted.into_iter().map(|(kind, rows)| (kind.name().to_owned(), rows)).collect())
}

async fn by_server(
    config: &Config,
    clock: Arc<dyn Clock>,
    task: &str,
    url: Option<&str>,
) -> Result<BTreeMap<String, u64>, Failure> {
    let configured =
        config.server.base_url.clone().unwrap_or_else(|| format!("http://{}", config.server.bind));
    let url = url.unwrap_or(&configured);
    let own = OwnRequests {
        key: harness::push::key(config)?,
        // What the server calls itself: its configured address, or else the one that it was found at.
        base_url: config.server.base_url.clone().unwrap_or_else(|| url.to_owned()),
        clock,
    };
    purge_task(url, task, &own).await.map_err(|error| {
        if matches!(error, ClientError::Status { status: 404, .. }) {
            return Failure::general(format!(
                "[{}] the server at {url} does not know this installation's key or address; name its base_url with \
                 --url, or stop it and purge again",
                codes::A2A_REQUEST_FAILED
            ));
        }
        let what = format!(
            "a server has the store open and cannot be asked at {url}; name its address with --url, or stop it and \
             purge again"
        );
        peer::failed(&what, &error)
    })
}
