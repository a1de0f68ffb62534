//! Model providers: everything between a [`harness_ports::ModelRequest`] and the wire of a model.
//!
//! Wires are thin: nothing is retried, no redirect is followed, every byte from outside is bounded before it is read,
//! and an answer that was cut short is an error. [`HttpProvider`] speaks the wires of [`Api`]; [`ScriptedProvider`]
//! needs no wire at all: it answers from a file. The others wrap providers: [`RecordingProvider`] writes down what
//! [`ReplayProvider`] plays back, and [`FallbackProvider`] moves on when one fails.

mod api;
mod base_url;
mod bounded_json;
mod call;
mod call_ids;
mod calls;
mod captured;
mod chat_completions;
mod conversation;
mod decoder;
mod endpoint;
mod exchange;
mod facts;
mod fallback;
mod http_failure;
mod messages;
mod recording;
mod replay;
mod responses;
mod scripted;
mod sse;
mod tool_names;
mod usage;
mod verbatim;
mod wire;

pub use api::Api;
pub use base_url::{BaseUrlError, check_base_url};
pub use captured::CapturedResponse;
pub use chat_completions::{ChatCompletionsConfig, ChatCompletionsProvider};
pub use endpoint::{EndpointConfig, HttpProvider, ProviderSetupError};
pub use fallback::{FallbackModel, FallbackProvider};
pub use recording::{RecordingError, RecordingProvider};
pub use replay::{ReplayError, ReplayProvider};
pub use scripted::{ScriptError, ScriptFormat, ScriptProblem, ScriptedProvider};
