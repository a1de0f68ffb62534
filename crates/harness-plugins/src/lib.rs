//! Loading of plugins: folders with a manifest, MCP servers, skills and prompts (Agent Plugins 1.0, Agent Skills).
//!
//! Everything in such a folder is untrusted input. Sizes are checked before anything is parsed, every path is resolved
//! through its symlinks and must stay inside the plugin, and what is wrong with one part never takes down another:
//! [`load_plugins`] always returns, with what it could load and the reasons for the rest.

mod front_matter;
mod limits;
mod load;
mod manifest;
mod mcp;
mod package;
mod prompt;
mod report;
mod skill;

pub use load::{Plugin, load_plugins};
pub use mcp::{McpServerSpec, McpTransport};
pub use prompt::{Prompt, PromptRole, PromptSection, SYSTEM_PROMPT_ID};
pub use report::{ComponentKind, LoadReport, Note, Skipped};
pub use skill::Skill;
