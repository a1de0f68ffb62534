//! The activities of a task: everything with an effect, over ports.
//!
//! [`Activities`] carries out the operations that `harness_agent` names: it reads messages (`intake.v1`), asks the model
//! and streams its words (`invoke_model.v1`), and calls tools (`invoke_tool.v1`). Each activity is tried once; whether
//! there is another try is decided by the task. Running one again is always safe: what it keeps is addressed by content
//! or by a key that is the same in every run.

mod activities;
mod blocks;
mod failure;
mod intake;
mod invoke_model;
mod invoke_tool;
mod observer;
mod registry;
mod skill_library;
mod tick;

pub use activities::{Activities, ContextSettings, Deps};
pub use observer::{ActivityObserver, ActivityRun};
pub use skill_library::{ResourceContent, ResourceKind, Skill, SkillLibrary, SkillResource};
pub use tick::{
    EngineFacts, EngineWatch, Outbox, ProcessInfo, Retention, STEP_TIME, Tick, TickDeps, TickError,
    TickReport,
};
