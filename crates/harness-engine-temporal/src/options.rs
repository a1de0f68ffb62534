//! What one engine is told.

use std::time::Duration;

use harness_journal::HostOptions;

/// How one process takes part.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Temporal task queue that servers and workers of one agent share.
    pub task_queue: String,
    /// What the Temporal id of a workflow has before the id of the task. Usually nothing.
    pub id_prefix: String,
    /// What this process does.
    pub hands: Hands,
    /// The agent's id, when tasks are to be found by the search attributes `A2AContextId`, `A2ATaskState` and
    /// `TinyHarnessAgent`, which must be registered in the namespace.
    pub search_attributes_of: Option<String>,
    /// After this long without a sign of life the execution of an activity counts as lost. At least 1 s.
    pub heartbeat_timeout: Duration,
    /// Activities that run at once in this process. At least 1.
    pub activities_running_max: usize,
    /// Temporal workflows that stay in memory.
    pub cached_workflows_max: usize,
    /// Events of a run of a Temporal workflow after which a fresh one takes over, earlier than the server suggests it;
    /// `None`: 4,000.
    pub run_events_max: Option<u32>,
    /// Between two looks for wake-ups that a process before could not send.
    pub sweep_interval: Duration,
    /// Between two looks for unfinished workflows whose Temporal workflow is gone: terminated by a person, or lost.
    pub audit_interval: Duration,
    /// How long executions that are cut off by the end of a drain may take to stop, before they are dropped.
    pub drain_cutoff: Duration,
    /// Limits of the hosting.
    pub host: HostOptions,
}

/// What a process does besides taking deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// Nothing: workers are elsewhere.
    None,
    /// It is one of the workers.
    Worker,
    /// It is the only worker there can be, because the store belongs to it alone: what an earlier process had begun is
    /// gone, and nobody has to wait to find out.
    OnlyWorker,
}

impl EngineOptions {
    /// The usual limits for a task queue.
    pub fn new(task_queue: impl Into<String>, hands: Hands) -> Self {
        Self {
            task_queue: task_queue.into(),
            id_prefix: String::new(),
            hands,
            search_attributes_of: None,
            heartbeat_timeout: Duration::from_secs(10),
            activities_running_max: 256,
            cached_workflows_max: 1_000,
            run_events_max: None,
            sweep_interval: Duration::from_secs(5),
            audit_interval: Duration::from_secs(300),
            drain_cutoff: Duration::from_millis(500),
            host: HostOptions::default(),
        }
    }
}
