//! The activities of a task: names, inputs and results. Recorded, versioned, never reinterpreted.
//!
//! Inputs and results are references and small facts; conversation content stays in the store.

use harness_model::{
    AgentId, ArtifactId, BlockRef, CallId, CodedError, Content, ContextId, ErrorCode, Finish, HelpRequest,
    InboundMessage, ItemBody, ItemRef, MessageId, Participant, TaskExtension, TaskId, TaskPatch, TaskState,
    Usage,
};
use serde::{Deserialize, Serialize};

use crate::IntrinsicRequest;

/// Reads messages: who speaks, what it means, whether it is welcome. Keys `[retries.per_activity] intake`.
pub const INTAKE: &str = "intake.v1";
/// Assembles the context and asks the model. Keys `[retries.per_activity] invoke_model`.
pub const INVOKE_MODEL: &str = "invoke_model.v1";
/// Calls one tool. Keys `[retries.per_activity] invoke_tool`.
pub const INVOKE_TOOL: &str = "invoke_tool.v1";

/// Every activity, in the order of a turn.
pub const ACTIVITIES: [&str; 3] = [INTAKE, INVOKE_MODEL, INVOKE_TOOL];

/// A conversation item before the task has numbered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemDraft {
    /// Where the item is.
    pub body: ItemBody,
    /// Characters the model reads for it.
    pub chars: u64,
}

/// Input of [`INTAKE`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntakeInput {
    /// The task.
    pub task_id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// Who may speak.
    pub participants: Vec<Participant>,
    /// The open question, if there is one.
    pub pending_help: Option<HelpRequest>,
    /// The messages, in order of arrival.
    pub messages: Vec<InboundMessage>,
}

/// Result of [`INTAKE`]: one outcome for each message, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntakeResult {
    /// The outcomes.
    pub outcomes: Vec<IntakeOutcome>,
}

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntakeOutcome {
    /// The message.
    pub message_id: MessageId,
    /// Accepted or refused.
    pub verdict: Verdict,
}

/// Whether a message is welcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Accepted(Box<AcceptedMessage>),
    /// It is not; the text is for its sender.
    Refused(CodedError),
}

/// What an accepted message means for the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcceptedMessage {
    /// What the model will read; `None` when there is nothing to read.
    pub item: Option<ItemDraft>,
    /// The plain text of the message, when it has any.
    pub text: Option<BlockRef>,
    /// What it changes about the task.
    pub patch: Option<TaskPatch>,
    /// Whether it answers the open question.
    pub answers_help: bool,
    /// The slash command it is, if it is one; then there is no item.
    pub command: Option<SlashCommand>,
}

/// A command of a participant: handled by the task, never shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlashCommand {
    /// `/complete`: end the task as it is.
    Complete,
    /// `/cancel`: cancel the task.
    Cancel,
    /// `/help`: list the commands.
    Help,
    /// Anything else that begins with a slash and a word.
    Unknown(String),
}

/// Input of [`INVOKE_MODEL`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeModelInput {
    /// The task.
    pub task_id: TaskId,
    /// This agent.
    pub agent_id: AgentId,
    /// The turn, from 1.
    pub turn: u32,
    /// The try of this turn, from 1; a fallback moves on with it.
    #[serde(default = "first")]
    pub attempt: u32,
    /// The artifact that carries the answer while it is written.
    pub artifact_id: ArtifactId,
    /// What the model is told about the task.
    pub extension: TaskExtension,
    /// The state of the task.
    pub state: TaskState,
    /// Skills the task has loaded.
    pub skills: Vec<LoadedSkill>,
    /// The conversation up to the last model call.
    pub manifest: Option<BlockRef>,
    /// Items since then.
    pub fresh: Vec<ItemRef>,
    /// The newest message of a participant.
    pub latest_message: Option<MessageId>,
    /// Model chosen for the task.
    pub model: Option<String>,
    /// Reasoning effort chosen for the task.
    pub reasoning_effort: Option<String>,
    /// What the last call measured; makes the next estimate exact.
    pub measured: Option<Measured>,
}

fn first() -> u32 {
    1
}

/// Tokens and characters of the last request, as measured by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Input tokens the provider counted.
    pub input_tokens: u64,
    /// Characters the request had.
    pub chars: u64,
}

/// A loaded skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadedSkill {
    /// Its name.
    pub name: String,
    /// Its body.
    pub body: BlockRef,
}

/// Result of [`INVOKE_MODEL`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelOutcome {
    /// The model answered.
    Answered(Box<ModelAnswer>),
    /// The context does not fit; the model was not asked.
    OverBudget {
        /// Estimated tokens of the context.
        estimate_tokens: u64,
        /// Tokens it may have.
        budget_tokens: u64,
    },
}

/// An answer of the model, as facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The conversation the model was shown: the old manifest and the fresh items.
    pub manifest: BlockRef,
    /// The answer as a conversation item.
    pub item: ItemDraft,
    /// Its text, when there is any.
    pub answer: Option<AnswerText>,
    /// The calls, in order.
    pub calls: Vec<PlannedCall>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Token counts.
    pub usage: Usage,
    /// The model that answered, `provider:model`.
    pub model: String,
    /// Characters of the request.
    pub context_chars: u64,
}

/// The text of an answer, and how much of it subscribers have seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerText {
    /// The whole text.
    pub text: Content,
    /// Whether the log holds the beginning of it already.
    pub streamed: bool,
    /// What the log does not hold yet; may be empty when `streamed`.
    pub tail: Content,
}

/// A call of the model, checked against the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The model's number of the call.
    pub call_id: CallId,
    /// Registry name of the tool, cleaned when it is unknown.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// What is to be done.
    pub action: CallAction,
}

/// What is to be done about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAction {
    /// Run a tool.
    Tool {
        /// Validated arguments, JSON text.
        arguments: BlockRef,
        /// Running it again with the same arguments changes nothing more.
        idempotent: bool,
        /// Running it changes nothing at all.
        #[serde(default)]
        read_only: bool,
        /// Running it again with the same key changes nothing more.
        deduplicates: bool,
    },
    /// Change the task itself.
    Intrinsic(IntrinsicRequest),
    /// Nothing: the call is not valid; the model reads why.
    Refused(CodedError),
}

/// Input of [`INVOKE_TOOL`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvokeToolInput {
    /// The task.
    pub task_id: TaskId,
    /// The turn that asked.
    pub turn: u32,
    /// The call.
    pub call_id: CallId,
    /// Registry name of the tool.
    pub name: String,
    /// Validated arguments, JSON text.
    pub arguments: BlockRef,
    /// Equal across tries of this call, different for every other call.
    pub idempotency_key: String,
    /// How long the call may take, in milliseconds.
    pub timeout_ms: u64,
}

/// Result of [`INVOKE_TOOL`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResultFacts {
    /// The result as a conversation item.
    pub item: ItemDraft,
    /// Whether the tool says it failed.
    pub is_error: bool,
    /// The code of the error, when it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What it changes about the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ToolChange>,
}

/// What a tool result changes about a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChange {
    /// A skill enters the context.
    SkillLoaded(LoadedSkill),
    /// A skill leaves it.
    SkillUnloaded {
        /// Its name.
        name: String,
    },
}
