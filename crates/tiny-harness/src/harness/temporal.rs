//! The Temporal engine: a development server of our own, or a server elsewhere.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use futures::future::BoxFuture;
use harness_activities::{EngineFacts, Tick};
use harness_engine_temporal::{
    Address, EngineOptions, EngineParts, Hands, Heartbeat, TemporalEngine, Tls, ensure_heartbeat,
    ensure_search_attributes,
};
use harness_ports::{StoreError, TaskGroup};
use harness_temporal_server::{
    BinarySource, DevServer, LogTo, SearchAttributeKind, ServerOptions, StartFailure, State,
    default_download_dir,
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

/// What the tick sees of the engine.
#[derive(Default)]
pub(super) struct Watch(OnceLock<Weak<TemporalEngine>>);

impl Watch {
    pub(super) fn see(&self, engine: &Arc<TemporalEngine>) {
        // It is filled once.
        drop(self.0.set(Arc::downgrade(engine)));
    }

    pub(super) async fn look(&self) -> Result<EngineFacts, StoreError> {
        let facts = EngineFacts { kind: "temporal", ..EngineFacts::default() };
        let Some(engine) = self.0.get().and_then(Weak::upgrade) else { return Ok(facts) };
        let health = engine.health().await?;
        Ok(EngineFacts {
            pending_wakes: Some(health.pending_wakes as u64),
            failed_wakes: Some(health.failed_wakes),
            workflow_task_failures: Some(health.workflow_task_failures),
            set_aside: Some(health.set_aside as u64),
            ..facts
        })
    }
}

/// The tick, as the schedule's workflow calls it.
struct ScheduledTick(Arc<Tick>);

impl Heartbeat for ScheduledTick {
    fn tick(&self) -> BoxFuture<'static, Result<(), String>> {
        let tick = Arc::clone(&self.0);
        Box::pin(async move { tick.run().await.map(drop).map_err(|error| error.to_string()) })
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
            (address_of(&server), Some(server))
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
    let interval = config.heartbeat.interval;
    let parts = EngineParts {
        store: parts.store,
        activities: parts.activities,
        clock: parts.clock,
        ids: parts.ids,
        workflows: parts.workflows,
        heartbeat: Some(Arc::new(ScheduledTick(parts.tick))),
    };
    match start_engine(parts, &address, options, interval).await {
        Ok(engine) => Ok(RunningTemporal { engine, embedded: embedded.map(watch) }),
        Err(failure) => {
            if let Some(server) = embedded {
                server.stop().await;
            }
            Err(failure)
        }
    }
}

/// What workers need in Temporal comes first: the engine goes on with tool calls the moment it starts.
async fn start_engine(
    parts: EngineParts,
    address: &Address,
    options: EngineOptions,
    interval: Duration,
) -> Result<Arc<TemporalEngine>, Failure> {
    let failed = |code, error: &dyn std::fmt::Display| {
        Failure::general(format!("[{code}] {error} (temporal.address)"))
    };
    if options.hands != Hands::None {
        if options.search_attributes_of.is_some()
            && let Err(error) = ensure_search_attributes(address).await
        {
            tracing::warn!(%error, "search attributes are not registered");
        }
        let made = ensure_heartbeat(address, &options.id_prefix, &options.task_queue, interval).await;
        made.map_err(|error| failed(error.code(), &error))?;
    }
    let engine = TemporalEngine::start(parts, address, options).await;
    engine.map_err(|error| failed(error.code(), &error))
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

/// Where the program of an embedded server comes from.
pub(crate) fn binary(temporal: &TemporalConfig) -> BinarySource {
    let wanted = &temporal.embedded;
    let usual = usual_binary();
    BinarySource {
        binary_path: wanted.binary_path.clone(),
        download_dir: wanted.download_dir.clone().or(usual.download_dir),
        search_path: usual.search_path,
    }
}

/// The database of an embedded server; `None` when it keeps nothing.
pub(crate) fn database(config: &Config, temporal: &TemporalConfig) -> Option<PathBuf> {
    let beside = || config.store.sqlite_path.with_file_name(EMBEDDED_DATABASE);
    let wanted = &temporal.embedded;
    wanted.persist.then(|| wanted.database_path.clone().unwrap_or_else(beside))
}

/// Starts the server of our own. It does not outlast our own grace: to leave in order takes it two to three seconds and
/// serves nothing, since it forces each of its commits to disk, and what is left to do for tasks is in the store.
pub(crate) async fn start_server(config: &Config, temporal: &TemporalConfig) -> Result<DevServer, Failure> {
    let wanted = &temporal.embedded;
    let state = database(config, temporal).map_or(State::InMemory, State::File);
    let mut options = ServerOptions::new(binary(temporal), state);
    options.port = wanted.port;
    options.namespace = temporal.table.namespace.clone().unwrap_or_else(|| EMBEDDED_NAMESPACE.to_owned());
    options.log = LogTo::Tracing;
    options.stop_grace = Duration::ZERO;
    options.search_attributes =
        SEARCH_ATTRIBUTES.iter().map(|name| ((*name).to_owned(), SearchAttributeKind::Keyword)).collect();
    DevServer::start(options).await.map_err(|error| {
        let mut text = format!("[{}] embedded Temporal failed to start: {error}", error.code());
        if matches!(error.failure, StartFailure::InUse { .. }) {
            text.push_str("; stop that process first");
        }
        Failure::general(text)
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

/// What a command finds that wants something of Temporal.
pub(crate) enum Visit<'a> {
    /// A server, at this address.
    Server(&'a Address),
    /// An embedded server that never ran, or keeps nothing: there is nothing in it.
    Nothing,
}

/// Lets a command do something with Temporal. A server of our own is started for it, on the state that it keeps.
/// Errors: those of the command; a server of our own does not start, because a running process owns it or otherwise.
pub(crate) async fn visit<T>(
    config: &Config,
    temporal: &TemporalConfig,
    act: impl AsyncFnOnce(Visit<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match temporal.table.mode {
        TemporalMode::Remote => act(Visit::Server(&remote(temporal)?)).await,
        TemporalMode::Embedded if !database(config, temporal).is_some_and(|file| file.exists()) => {
            act(Visit::Nothing).await
        }
        TemporalMode::Embedded => {
            let server = start_server(config, temporal).await?;
            let done = act(Visit::Server(&address_of(&server))).await;
            server.stop().await;
            done
        }
    }
}

/// How to reach a server of our own.
pub(crate) fn address_of(server: &DevServer) -> Address {
    Address {
        target: server.address().to_string(),
        namespace: server.namespace().to_owned(),
        tls: None,
        api_key: None,
        identity: identity(),
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
