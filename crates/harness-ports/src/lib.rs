//! The traits through which the parts of the harness meet, with their contracts.
//!
//! Decisions live behind [`Workflow`], effects behind [`ActivityHost`] and the outside ports ([`ModelProvider`],
//! [`ToolSource`]); an [`Engine`] connects them durably over a [`Store`]. With the feature `conformance` the crate also
//! carries the suites that every engine and every store must pass.

mod activity;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod deletion;
mod engine;
mod model_provider;
mod pull_channel;
mod store;
mod task_group;
mod tools;
mod workflow;
mod write_batch;

pub use activity::{
    ActivityContext, ActivityFailure, ActivityHost, ActivityOptions, ActivityTask, FailureKind, OnCrash,
};
pub use clock::{Clock, IdSource};
pub use deletion::{Census, DeleteWhen, DeletedRows, OldestTasks, RowKind};
pub use engine::{Capabilities, Delivered, Delivery, Engine, EngineError, Signal, StartWorkflow};
pub use model_provider::{
    InputItem, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelProvider, ModelRequest, ModelStream,
    RequestMeta,
};
pub use pull_channel::PullChannel;
pub use store::{
    LogStream, Record, RecordKind, Store, StoreError, StoredTimer, StoredWorkflow, TaskCursor, TaskFields,
    TaskPage, TaskQuery,
};
pub use task_group::TaskGroup;
pub use tools::{ToolCall, ToolDefinition, ToolError, ToolErrorKind, ToolOutput, ToolPart, ToolSource};
pub use workflow::{
    Admission, Command, EventKind, HistoryEvent, IllegalEvent, RestoreError, Workflow, WorkflowDefinition,
};
pub use write_batch::{Block, Committed, HistoryAppend, Publish, Write, WriteBatch};
