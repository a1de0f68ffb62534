//! The Temporal engine: a development server of our own, or a server elsewhere.

use std::{path::Path, sync::Arc, time::Duration};

use harness_engine_temporal::{Address, EngineOptions, EngineParts, Hands, TemporalEngine, Tls};
use harness_ports::TaskGroup;
use harness_temporal_server::{
    BinarySource, DevServer, LogTo, SearchAttributeKind, ServerOptions, State, default_download_dir,
};

use super::engine::{Parts, Role};
use crate::{
    config::{Config, TemporalConfig, TemporalMode},
    failure::Failure,
    output,
};

/// The namespace of an embedded server when none is named.
const EMBEDDED_NAMESPACE: &str = "default";
/// The database of an embedded server, beside the store.
const EMBEDDED_DATABASE: &str = "temporal.sqlite3";
/// Attributes that tasks are found by.
const SEARCH_ATTRIBUTES: [&str; 3] = ["A2AContextId", "A2ATaskState", "TinyHarnessAgent"];

/// The engine and, if it is ours, the server below it.
pub(super) struct RunningTemporal {
    pub(super) engine: Arc<TemporalEngine>,
    embedded: Option<Embedded>,
}

/// A server of our own, and who watches over it.
struct Embedded {
    server: DevServer,
    watch: TaskGroup,
}

impl RunningTemporal {
    /// Stops the engine within `grace`, then the server below it.
    pub(super) async fn stop(self, grace: Duration) -> bool {
        let mut ended = self.engine.drain(grace).await;
        if let Some(Embedded { server, watch }) = self.embedded {
            ended &= watch.shutdown(Duration::from_secs(1)).await;
            server.stop().await;
        }
        ended
    }
}

/// Starts the engine. Errors: texts for the operator; whatever was started is stopped again.
pub(super) async fn start(
    config: &Config,
    temporal: &TemporalConfig,
    role: Role,
    parts: Parts,
) -> Result<RunningTemporal, Failure> {
    let (address, embedded) = match temporal.table.mode {
        TemporalMode::Remote => (remote(temporal)?, None),
        TemporalMode::Embedded => {
            let server = start_server(config, temporal).await?;
            let address = Address {
                target: server.address().to_string(),
                namespace: server.namespace().to_owned(),
                tls: None,
                api_key: None,
                identity: identity(),
            };
            (address, Some(server))
        }
    };
    let hands = match role {
        Role::Server => Hands::None,
        Role::Worker | Role::ServerAndWorker if super::store_is_shared(config) => Hands::Worker,
        Role::Worker | Role::ServerAndWorker => Hands::OnlyWorker,
    };
    let mut options = EngineOptions::new(temporal.table.task_queue.clone(), hands);
    if temporal.table.search_attributes {
        options.search_attributes_of = Some(config.server.agent_id.clone());
    }
    let parts = EngineParts {
        store: parts.store,
        activities: parts.activities,
        clock: parts.clock,
        ids: parts.ids,
        workflows: parts.workflows,
        heartbeat: None,
    };
    match TemporalEngine::start(parts, &address, options).await {
        Ok(engine) => Ok(RunningTemporal { engine, embedded: embedded.map(watch) }),
        Err(error) => {
            if let Some(server) = embedded {
                server.stop().await;
            }
            Err(Failure::general(format!("[{}] {error} (temporal.address)", error.code())))
        }
    }
}

/// Says it when the server dies; what it knew goes on at the next start.
fn watch(server: DevServer) -> Embedded {
    let watch = TaskGroup::new();
    let (died, stop) = (server.died(), watch.stop_token().clone());
    watch.spawn(async move {
        if let Some(died) = stop.run_until_cancelled(died).await {
            let last = died.last_lines.last().cloned().unwrap_or_default();
            tracing::error!(status = died.status, last, "the embedded Temporal ended; restart this process");
            output::problem(
                "the embedded Temporal ended by itself; tasks go on when this process is restarted",
            );
        }
    });
    Embedded { server, watch }
}

/// Starts the server of our own. It does not outlast our own grace: to leave in order takes it two to three seconds and
/// serves nothing, since it forces each of its commits to disk, and what is left to do for tasks is in the store.
pub(crate) async fn start_server(config: &Config, temporal: &TemporalConfig) -> Result<DevServer, Failure> {
    let wanted = &temporal.embedded;
    let usual = usual_binary();
    let binary = BinarySource {
        binary_path: wanted.binary_path.clone(),
        download_dir: wanted.download_dir.clone().or(usual.download_dir),
        search_path: usual.search_path,
    };
    let beside = || config.store.sqlite_path.with_file_name(EMBEDDED_DATABASE);
    let state = if wanted.persist {
        State::File(wanted.database_path.clone().unwrap_or_else(beside))
    } else {
        State::InMemory
    };
    let mut options = ServerOptions::new(binary, state);
    options.port = wanted.port;
    options.namespace = temporal.table.namespace.clone().unwrap_or_else(|| EMBEDDED_NAMESPACE.to_owned());
    options.log = LogTo::Tracing;
    options.stop_grace = Duration::ZERO;
    options.search_attributes =
        SEARCH_ATTRIBUTES.iter().map(|name| ((*name).to_owned(), SearchAttributeKind::Keyword)).collect();
    DevServer::start(options).await.map_err(|error| {
        Failure::general(format!("[{}] embedded Temporal failed to start: {error}", error.code()))
    })
}

/// Where the program comes from when the configuration does not say.
pub(crate) fn usual_binary() -> BinarySource {
    let environment = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let (cache, home) = (environment("XDG_CACHE_HOME"), environment("HOME"));
    BinarySource {
        binary_path: None,
        search_path: environment("PATH"),
        download_dir: default_download_dir(cache.as_deref(), home.as_deref()),
    }
}

/// How to reach a server elsewhere.
pub(crate) fn remote(temporal: &TemporalConfig) -> Result<Address, Failure> {
    let table = &temporal.table;
    let tls = if table.tls {
        let client = match (&table.client_certificate, &table.client_key) {
            (Some(certificate), Some(key)) => {
                Some((read(certificate, "temporal.client_certificate")?, read(key, "temporal.client_key")?))
            }
            _ => None,
        };
        let server_ca =
            table.server_ca.as_deref().map(|path| read(path, "temporal.server_ca")).transpose()?;
        Some(Tls { server_ca, server_name: table.server_name.clone(), client })
    } else {
        None
    };
    Ok(Address {
        target: table.address.clone().unwrap_or_default(),
        namespace: table.namespace.clone().unwrap_or_default(),
        tls,
        api_key: temporal.api_key.as_ref().map(|key| key.reveal().to_owned()),
        identity: identity(),
    })
}

fn read(path: &Path, key: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::general(format!("cannot read {}: {} ({key})", path.display(), error.kind()))
    })
}

/// What the server calls this process in its lists.
fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("tiny-harness {}@{host}", std::process::id())
}
