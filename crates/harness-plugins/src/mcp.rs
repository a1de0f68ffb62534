//! `mcp.json`: the MCP servers of a plugin. Source: Agent Plugins 1.0, sections 7.2 and 9.

mod http_server;
mod stdio_server;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use harness_model::{ErrorCode, codes, one_line, parse_json_bounded};
use serde_json::{Map, Value};

use crate::{ComponentKind, Skipped, limits, package::Package, report::quoted};

/// The only schema this build knows.
const SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";

/// An MCP server that a plugin brings, checked and with its placeholders expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerSpec {
    /// Name within the plugin: 1 to 64 printable characters without `/`.
    pub name: String,
    /// What stands before the name of each of its tools: `<plugin>/<server>`.
    pub registry_prefix: String,
    /// How to reach it.
    pub transport: McpTransport,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// A process that talks on its standard input and output.
    Stdio {
        /// A bare name to look up on `PATH`, or the absolute path of a file inside the plugin.
        command: String,
        /// Arguments, as they are.
        args: Vec<String>,
        /// Variables on top of the base environment. `PLUGIN_ROOT` and `PLUGIN_DATA` are among them.
        env: BTreeMap<String, String>,
        /// Existing folder inside the plugin or its data folder.
        cwd: PathBuf,
    },
    /// Streamable HTTP.
    StreamableHttp {
        /// `https`, or `http` to a literal loopback host; no user information, no fragment.
        url: String,
        /// Fixed headers; valid names in lower case.
        headers: BTreeMap<String, String>,
    },
}

/// Why one server was not loaded.
#[derive(Debug)]
pub(crate) struct ServerError {
    code: ErrorCode,
    reason: String,
}

impl ServerError {
    fn invalid(reason: impl Into<String>) -> Self {
        Self { code: codes::PLUGIN_INVALID, reason: reason.into() }
    }
}

/// Reads the servers of a plugin; what cannot be loaded goes to `skipped`.
pub(crate) fn load(
    package: &Package,
    plugin: &str,
    data_folder: &Path,
    skipped: &mut Vec<Skipped>,
) -> Vec<McpServerSpec> {
    let servers = match package.read_text("mcp.json", limits::MCP_BYTES_MAX) {
        Ok(None) => return Vec::new(),
        Ok(Some(text)) => parse(&text),
        Err(error) => Err(format!("mcp.json {error}")),
    };
    let servers = match servers {
        Ok(servers) => servers,
        Err(reason) => {
            skipped.push(Skipped::new(ComponentKind::Mcp, plugin, codes::PLUGIN_INVALID, &reason));
            return Vec::new();
        }
    };
    let mut loaded = Vec::new();
    for (name, entry) in servers {
        match server(package, data_folder, &name, entry) {
            Ok(transport) => {
                let registry_prefix = format!("{plugin}/{name}");
                loaded.push(McpServerSpec { name, registry_prefix, transport });
            }
            Err(error) => {
                let id = format!(
                    "{plugin}/{}",
                    harness_model::truncate_chars(&one_line(&name), limits::NAME_CHARS_MAX)
                );
                skipped.push(Skipped::new(ComponentKind::McpServer, id, error.code, &error.reason));
            }
        }
    }
    loaded
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let value = parse_json_bounded(text.as_bytes(), limits::JSON_DEPTH_MAX)
        .map_err(|error| format!("mcp.json: {error}"))?;
    let Value::Object(mut fields) = value else {
        return Err("mcp.json must be a JSON object".to_owned());
    };
    if fields.get("$schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(format!("mcp.json: $schema is required and must be {SCHEMA}"));
    }
    if let Some(key) = fields.keys().find(|key| !matches!(key.as_str(), "$schema" | "mcpServers")) {
        return Err(format!("mcp.json: unknown field {}; it may have $schema and mcpServers", quoted(key)));
    }
    match fields.remove("mcpServers") {
        Some(Value::Object(servers)) if servers.len() <= limits::SERVERS_MAX => Ok(servers),
        Some(Value::Object(_)) => Err(format!("mcp.json has more than {} servers", limits::SERVERS_MAX)),
        Some(_) | None => Err("mcp.json: mcpServers is required and must be an object".to_owned()),
    }
}

fn server(
    package: &Package,
    data_folder: &Path,
    name: &str,
    entry: Value,
) -> Result<McpTransport, ServerError> {
    let printable = !name.is_empty() && one_line(name) == name && !name.contains(['/', '<', '>']);
    if !printable || name.chars().count() > limits::NAME_CHARS_MAX {
        return Err(ServerError::invalid(
            "a server's name must be 1 to 64 printable characters without `/`, `<`, `>`",
        ));
    }
    let Value::Object(fields) = entry else {
        return Err(ServerError::invalid("must be an object"));
    };
    let fields = Fields(fields);
    match fields.required("type")? {
        "stdio" => stdio_server::read(package, data_folder, &fields),
        "streamable-http" => http_server::read(&fields),
        "sse" => {
            http_server::read(&fields)?;
            Err(ServerError {
                code: codes::PLUGIN_COMPONENT_SKIPPED,
                reason: "the transport `sse` is not supported; use `streamable-http`".to_owned(),
            })
        }
        other => Err(ServerError::invalid(format!(
            "type {} is unknown; it is `stdio` or `streamable-http`",
            quoted(other)
        ))),
    }
}

/// The fields of one server entry.
struct Fields(Map<String, Value>);

impl Fields {
    /// Refuses fields that the variant does not have.
    fn only(&self, known: &[&str]) -> Result<(), ServerError> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(ServerError::invalid(format!(
                "unknown field {}; this type has {}",
                quoted(key),
                known.join(", ")
            ))),
        }
    }

    fn required(&self, key: &str) -> Result<&str, ServerError> {
        match self.optional(key)? {
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) | None => {
                Err(ServerError::invalid(format!("{key} is required and must be a non-empty string")))
            }
        }
    }

    fn optional(&self, key: &str) -> Result<Option<&str>, ServerError> {
        self.0.get(key).map(|value| string(key, value)).transpose()
    }

    fn list(&self, key: &str) -> Result<Vec<&str>, ServerError> {
        match self.0.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) if items.len() <= limits::SERVER_STRINGS_MAX => {
                items.iter().map(|item| string(key, item)).collect()
            }
            Some(Value::Array(_)) => Err(too_many(key)),
            Some(_) => Err(ServerError::invalid(format!("{key} must be a list of strings"))),
        }
    }

    fn map(&self, key: &str) -> Result<Vec<(&str, &str)>, ServerError> {
        match self.0.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Object(map)) if map.len() <= limits::SERVER_STRINGS_MAX => {
                map.iter().map(|(name, value)| Ok((name.as_str(), string(key, value)?))).collect()
            }
            Some(Value::Object(_)) => Err(too_many(key)),
            Some(_) => Err(ServerError::invalid(format!("{key} must be an object of strings"))),
        }
    }
}

fn string<'a>(key: &str, value: &'a Value) -> Result<&'a str, ServerError> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(ServerError::invalid(format!("{key} contains a zero byte")))
        }
        Value::String(text) if text.len() <= limits::SERVER_STRING_BYTES_MAX => Ok(text),
        Value::String(_) => Err(ServerError::invalid(format!(
            "{key} is longer than {} bytes",
            limits::SERVER_STRING_BYTES_MAX
        ))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(ServerError::invalid(format!("{key} must hold strings only")))
        }
    }
}

fn too_many(key: &str) -> ServerError {
    ServerError::invalid(format!("{key} has more than {} entries", limits::SERVER_STRINGS_MAX))
}
