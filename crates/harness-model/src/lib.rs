//! Values and pure rules of the harness: no I/O, no clock, no randomness.
//!
//! Everything here is either a *value* that is stored, sent or shown (ids, tasks, plans, messages, log entries) or a
//! *rule* about such values (limits, cleaning, redaction, what an envelope may change). Wire types of A2A, MCP and the
//! model providers live with their adapters and are converted at the border.

mod clean;
mod content;
mod conversation;
mod envelope;
mod error_code;
mod event_log;
mod extension;
mod ids;
mod json;
pub mod limits;
mod message;
pub mod names;
mod participant;
mod plan;
mod record;
mod redact;
mod task;
mod task_protocol;
mod time;
mod trace_parent;

pub use clean::{
    Cleaned, clean_field, clean_terminal, disarm_tags, fence_untrusted, one_line, truncate_chars,
};
pub use content::{BlockId, BlockRef, Content, ContentBody, ContentPart};
pub use conversation::{
    Finish, ItemBody, ItemPart, ItemRef, ModelOutput, RequestedCall, Source, StoredItem, Usage,
};
pub use envelope::{Brief, Envelope, EnvelopeError, EnvelopeKind, TaskPatch, parse_envelope};
pub use error_code::{ALL_CODES, CodedError, ErrorCode, codes};
pub use event_log::{
    ArtifactChange, HelpRequest, LogEntry, StatusChange, TaskEvent, ToolCallState, ToolCallSummary,
};
pub use extension::{AcceptanceCriterion, EntityKind, EntityRef, TaskExtension, TaskRef};
pub use ids::{
    ActivityId, AgentId, ArtifactId, CallId, ContextId, MessageId, ParticipantId, TaskId, TimerId, WorkflowId,
};
pub use json::{ParseJsonError, depth_at_most, parse_json_bounded};
pub use message::{Message, Part, PartBody, Role};
pub use participant::{Participant, ParticipantKind, ParticipantRole};
pub use plan::{NewStep, Plan, PlanError, Step, StepState, step_slug};
pub use record::{Artifact, HistoryEntry, TaskRecord, TaskSnapshot, TaskUsage};
pub use redact::{MASK, Redactor, Secret};
pub use task::{Lifecycle, SubState, TaskState};
pub use task_protocol::{
    CANCEL_SIGNAL, CancelRequest, InboundMessage, MESSAGE_SIGNAL, StartTask, TASK_WORKFLOW, TaskMode,
};
pub use time::Timestamp;
pub use trace_parent::TraceParent;
