//! The agent: what a task does, as a pure state machine, and what its model reads.
//!
//! Nothing here awaits, reads a clock, draws a random number or touches anything outside. [`TaskDefinition`] is what an
//! engine hosts; the operations it asks for are in this crate as names, inputs and results, and are carried out by
//! `harness-activities`.

pub mod context;
pub mod intake;
pub mod intrinsics;
pub mod operations;
mod settings;
mod task;

pub use intrinsics::IntrinsicRequest;
pub use operations::{
    AcceptedMessage, AnswerText, CallAction, INTAKE, INVOKE_MODEL, INVOKE_TOOL, IntakeInput, IntakeOutcome,
    IntakeResult, InvokeModelInput, InvokeToolInput, ItemDraft, LoadedSkill, Measured, ModelAnswer,
    ModelOutcome, PlannedCall, SlashCommand, ToolChange, ToolResultFacts, Verdict,
};
pub use settings::{ModelPrice, Retries, RetryPolicy, TaskSettings};
pub use task::{TaskDefinition, TaskFacts, TaskInput};
