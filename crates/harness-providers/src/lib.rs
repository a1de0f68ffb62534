//! Model providers: everything between a [`harness_ports::ModelRequest`] and the wire of a model.
//!
//! Wires are thin: nothing is retried, no redirect is followed, every byte from outside is bounded before it is read,
//! and an answer that was cut short is an error. [`ScriptedProvider`] needs no wire at all: it answers from a file.

mod base_url;
mod chat_completions;
mod http_failure;
mod scripted;
mod sse;
mod tool_names;

pub use base_url::{BaseUrlError, check_base_url};
pub use chat_completions::{ChatCompletionsConfig, ChatCompletionsProvider, ProviderSetupError};
pub use scripted::{ScriptError, ScriptFormat, ScriptProblem, ScriptedProvider};
