//! The tools of all servers, as registered at start.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use harness_model::{clean_field, codes};
use harness_ports::ToolDefinition;
use rmcp::model::Tool;

use crate::{
    config::StartProblem,
    definition::{Digest, register},
    server::ServerHandle,
};

/// Characters of a name from outside in a message.
const NAME_CHARS_MAX: usize = 80;

/// A registered tool and where to call it.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredTool {
    pub(crate) definition: ToolDefinition,
    pub(crate) digest: Digest,
    /// Its name at the server.
    pub(crate) tool: String,
    pub(crate) server: Arc<ServerHandle>,
}

impl RegisteredTool {
    /// Whether a call whose outcome is unknown may be repeated with the same key.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.definition.idempotent || self.definition.deduplicates
    }
}

/// Registered tools by registry name.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    tools: BTreeMap<String, Arc<RegisteredTool>>,
}

impl Catalogue {
    /// Registers what a server lists. A tool that cannot be registered, or whose name is listed twice, is a problem.
    pub(crate) fn add(
        &mut self,
        prefix: &str,
        server: &Arc<ServerHandle>,
        tools: &[Tool],
    ) -> Vec<StartProblem> {
        let mut listed = HashMap::new();
        for tool in tools {
            *listed.entry(tool.name.as_ref()).or_insert(0) += 1;
        }
        let mut problems = Vec::new();
        for tool in tools {
            let registered = match listed.get(tool.name.as_ref()) {
                Some(1) => register(prefix, tool),
                Some(_) | None => Err("its name is listed more than once".to_owned()),
            };
            match registered {
                Ok(definition) => {
                    let entry = RegisteredTool {
                        digest: Digest::of(tool),
                        tool: tool.name.to_string(),
                        server: server.clone(),
                        definition,
                    };
                    self.tools.insert(entry.definition.name.clone(), Arc::new(entry));
                }
                Err(why) => problems.push(problem(prefix, &tool.name, &why)),
            }
        }
        problems
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.tools.get(name).cloned()
    }

    /// Sorted by name.
    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.values().map(|tool| tool.definition.clone()).collect()
    }
}

fn problem(prefix: &str, tool: &str, why: &str) -> StartProblem {
    let tool = clean_field(tool, Some(NAME_CHARS_MAX)).text;
    StartProblem {
        server: prefix.to_owned(),
        code: codes::PLUGIN_COMPONENT_SKIPPED,
        message: format!("tool {tool:?} of MCP server {prefix} is not available: {why}"),
        tool: Some(tool),
    }
}
