//! One store and one Temporal server, and any number of processes over them.

use std::{future::Future, process::Stdio, sync::Arc, time::Duration};

use futures::StreamExt;
use harness_engine_temporal::{Address, EngineOptions, EngineParts, Hands, TemporalEngine};
use harness_journal::HostOptions;
use harness_model::{Content, LogEntry, TaskEvent, TaskId};
use harness_ports::{Delivered, Engine, Store};
use harness_store::{SqliteStore, StoreOptions};
use harness_testkit::{Fault, FaultStore, MemoryStore, TemporalServer, temporal_binary};
use tempfile::TempDir;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, UntypedWorkflow, WorkflowDescribeOptions,
    WorkflowExecutionStatus, WorkflowFetchHistoryOptions, WorkflowHistory,
};
use tokio::process::Command;

use crate::{
    doings::Doings,
    lab::{CountingIds, DayClock},
    script::{ScriptDefinition, Step, order},
};

pub(crate) const QUEUE: &str = "world";
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits, but not forever.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

/// Asks again and again until the answer is there.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    in_time(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// What the processes of a test share.
pub(crate) struct World {
    pub(crate) server: TemporalServer,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) doings: Arc<Doings>,
    clock: Arc<DayClock>,
    ids: Arc<CountingIds>,
    _directory: Option<TempDir>,
}

impl World {
    /// With everything in memory.
    pub(crate) async fn memory() -> Option<Self> {
        Some(Self::over(TemporalServer::start().await?, MemoryStore::new(), None))
    }

    /// With a SQLite store, opened once.
    pub(crate) async fn sqlite() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(StoreOptions::new(directory.path().join("store.db"))).unwrap();
        Some(Self::over(TemporalServer::start().await?, store, Some(directory)))
    }

    pub(crate) fn over(server: TemporalServer, store: Arc<dyn Store>, directory: Option<TempDir>) -> Self {
        let (clock, ids) = (Arc::default(), Arc::default());
        Self { server, store, doings: Doings::new(), clock, ids, _directory: directory }
    }

    pub(crate) fn address(&self, identity: &str) -> Address {
        Address {
            target: self.server.address().to_string(),
            namespace: self.server.namespace().to_owned(),
            tls: None,
            api_key: None,
            identity: identity.to_owned(),
        }
    }

    pub(crate) async fn process(&self, identity: &str, hands: Hands) -> Process {
        self.process_with(identity, hands, |_, _| {}).await
    }

    pub(crate) async fn process_with(
        &self,
        identity: &str,
        hands: Hands,
        configure: impl FnOnce(&mut EngineParts, &mut EngineOptions),
    ) -> Process {
        let faulty = FaultStore::over(Arc::clone(&self.store), Fault::None);
        let mut parts = EngineParts {
            store: Arc::clone(&faulty) as _,
            activities: Arc::clone(&self.doings) as _,
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
            workflows: vec![Arc::new(ScriptDefinition)],
            heartbeat: None,
        };
        let mut options = EngineOptions {
            heartbeat_timeout: Duration::from_secs(1),
            sweep_interval: Duration::from_millis(100),
            audit_interval: Duration::from_millis(500),
            drain_cutoff: Duration::from_millis(100),
            host: HostOptions { cancel_grace: Duration::from_millis(100), ..HostOptions::default() },
            ..EngineOptions::new(QUEUE, hands)
        };
        configure(&mut parts, &mut options);
        let engine = TemporalEngine::start(parts, &self.address(identity), options).await.unwrap();
        Process { engine, faulty }
    }

    /// Everything a workflow has seen and said.
    pub(crate) async fn transcript(&self, workflow_id: &str) -> Vec<String> {
        let entries = self.store.log(&TaskId::new(workflow_id), None, usize::from(u16::MAX)).await.unwrap();
        entries.iter().map(line).collect()
    }

    /// Waits until a workflow has written a line.
    pub(crate) async fn wait_for(&self, workflow_id: &str, wanted: &str) {
        let mut log = self.store.follow(&TaskId::new(workflow_id), None);
        let mut seen = Vec::new();
        let found = async {
            while let Some(Ok(entry)) = log.next().await {
                seen.push(line(&entry));
                if seen.last().is_some_and(|line| line == wanted) {
                    return;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        assert!(found.is_ok(), "no line {wanted:?} in the log of {workflow_id}: {seen:#?}");
    }

    /// Runs `temporal` with arguments that the server or a workflow refuses.
    pub(crate) async fn refused(&self, arguments: &[&str]) {
        let output = Command::new(temporal_binary().unwrap())
            .args(arguments)
            .args(["--address", &self.server.address().to_string(), "--disable-config-file"])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = in_time("an answer", output).await.unwrap();
        assert!(!output.status.success(), "{arguments:?} is taken: {output:?}");
    }

    pub(crate) async fn client(&self) -> Client {
        let target: temporalio_client::Url = format!("http://{}", self.server.address()).parse().unwrap();
        let connection = ConnectionOptions::new(target).identity("test".to_owned()).build();
        let connection = Connection::connect(connection).await.unwrap();
        Client::new(connection, ClientOptions::new(self.server.namespace()).build()).unwrap()
    }

    /// The history of the newest run of a Temporal workflow.
    pub(crate) fn history(&self, client: &Client, workflow_id: &str) -> WorkflowHistory {
        let handle = client.get_workflow_handle::<UntypedWorkflow>(workflow_id);
        handle.fetch_history(WorkflowFetchHistoryOptions::default())
    }

    /// Waits until the Temporal workflow has this status.
    pub(crate) async fn wait_status(
        &self,
        client: &Client,
        workflow_id: &str,
        status: WorkflowExecutionStatus,
    ) {
        let handle = client.get_workflow_handle::<UntypedWorkflow>(workflow_id);
        until(&format!("{workflow_id} is {status:?}"), || async {
            let described = handle.describe(WorkflowDescribeOptions::default()).await.ok()?;
            (described.status() == status).then_some(())
        })
        .await;
    }
}

/// One engine.
pub(crate) struct Process {
    pub(crate) engine: Arc<TemporalEngine>,
    faulty: Arc<FaultStore>,
}

impl Process {
    pub(crate) async fn deliver(
        &self,
        workflow_id: &str,
        label: &str,
        key: Option<&str>,
        steps: &[Step],
    ) -> Delivered {
        in_time("a receipt", self.engine.deliver(order(workflow_id, label, key, steps))).await.unwrap()
    }

    /// Delivers an order that must be accepted.
    pub(crate) async fn accept(&self, workflow_id: &str, label: &str, steps: &[Step]) {
        let receipt = self.deliver(workflow_id, label, None, steps).await;
        assert!(matches!(receipt, Delivered::Accepted { .. }), "{label}: {receipt:?}");
    }

    /// Ends at once: nothing reaches the store any more.
    pub(crate) async fn kill(self) {
        self.faulty.die();
        self.engine.drain(Duration::ZERO).await;
    }

    /// Ends in good order.
    pub(crate) async fn drain(self) -> bool {
        self.engine.drain(Duration::from_secs(10)).await
    }
}

fn line(entry: &LogEntry) -> String {
    match &entry.event {
        TaskEvent::StatusChanged(status) => match &status.text {
            Some(Content::Inline(text)) => text.clone(),
            Some(Content::Block(_)) | None => String::new(),
        },
        TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => String::new(),
    }
}
