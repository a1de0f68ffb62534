//! What became of each part of each plugin.

use std::fmt;

use harness_model::{ErrorCode, one_line, truncate_chars};

use crate::Plugin;

/// Characters of a reason or a note; they may quote what a plugin says.
const REASON_CHARS_MAX: usize = 400;
/// Characters of a quoted value.
const QUOTE_CHARS_MAX: usize = 80;

/// The outcome of loading plugins. Deterministic for given folders.
#[derive(Debug, Default)]
pub struct LoadReport {
    /// What was loaded, in the order of the configuration.
    pub plugins: Vec<Plugin>,
    /// What was not loaded, and why.
    pub skipped: Vec<Skipped>,
    /// What was loaded although something about it is odd.
    pub notes: Vec<Note>,
}

/// A plugin or a part of one that was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// What it is.
    pub kind: ComponentKind,
    /// Which one: `<plugin>`, `<plugin>/<part>`, or the configured folder when the plugin has no valid name.
    pub id: String,
    /// Stable code.
    pub code: ErrorCode,
    /// What is wrong, for the operator: one line, bounded, may name paths.
    pub reason: String,
}

impl Skipped {
    pub(crate) fn new(kind: ComponentKind, id: impl Into<String>, code: ErrorCode, reason: &str) -> Self {
        Self { kind, id: id.into(), code, reason: bounded(reason) }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} skipped: {} [{}]", self.kind.name(), self.id, self.reason, self.code)
    }
}

/// Something odd that did not keep its plugin from being loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the plugin.
    pub plugin: String,
    /// What is odd: one line, bounded.
    pub text: String,
}

impl Note {
    pub(crate) fn new(plugin: impl Into<String>, text: &str) -> Self {
        Self { plugin: plugin.into(), text: bounded(text) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin {}: {}", self.plugin, self.text)
    }
}

/// The kinds of parts that can be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentKind {
    /// A whole plugin.
    Plugin,
    /// Every MCP server of a plugin.
    Mcp,
    /// One MCP server.
    McpServer,
    /// Every skill of a plugin.
    Skills,
    /// One skill.
    Skill,
    /// Every prompt of a plugin.
    Prompts,
    /// One prompt.
    Prompt,
    /// The hooks of a plugin.
    Hooks,
    /// The commands of a plugin.
    Commands,
}

impl ComponentKind {
    /// The name as people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Mcp => "MCP configuration",
            Self::McpServer => "MCP server",
            Self::Skills => "skills",
            Self::Skill => "skill",
            Self::Prompts => "prompts",
            Self::Prompt => "prompt",
            Self::Hooks => "hooks",
            Self::Commands => "commands",
        }
    }
}

/// A value of a plugin as it is quoted in a reason.
pub(crate) fn quoted(value: &str) -> String {
    format!("`{}`", truncate_chars(&one_line(value), QUOTE_CHARS_MAX))
}

fn bounded(text: &str) -> String {
    truncate_chars(&one_line(text), REASON_CHARS_MAX)
}
