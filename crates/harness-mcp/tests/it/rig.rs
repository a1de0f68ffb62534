//! The misbehaving server on stdio, and how tests call tools.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use harness_mcp::{McpOptions, McpTools, ServerConfig, ServerTransport, StartProblem};
use harness_ports::{TaskGroup, ToolCall, ToolError, ToolOutput, ToolPart, ToolSource};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A time that no test reaches unless something hangs.
pub(crate) const LONG: Duration = Duration::from_secs(40);

/// A started server of the fixture, alone behind a tool source.
pub(crate) struct Rig {
    pub(crate) tools: Arc<McpTools>,
    pub(crate) problems: Vec<StartProblem>,
    pub(crate) state: State,
    _group: TaskGroup,
}

impl Rig {
    pub(crate) async fn start(mode: &str) -> Self {
        let state = State::new();
        let (tools, problems, group) = start(vec![state.server("p/s", mode)], state.options()).await;
        Self { tools, problems, state, _group: group }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.tools.call(call(&format!("p/s.{tool}"), arguments)).await
    }

    /// The answer of a call, as text.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await.unwrap();
        match output.parts.as_slice() {
            [ToolPart::Text(text)] => text.clone(),
            other => panic!("not one text: {other:?}"),
        }
    }
}

pub(crate) async fn start(
    servers: Vec<ServerConfig>,
    options: McpOptions,
) -> (Arc<McpTools>, Vec<StartProblem>, TaskGroup) {
    let group = TaskGroup::new();
    let (tools, problems) = McpTools::start(servers, options, &group).await;
    (tools, problems, group)
}

pub(crate) fn call(name: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolCall {
        name: name.to_owned(),
        arguments,
        idempotency_key: "key-1".to_owned(),
        timeout: LONG,
        cancel: CancellationToken::new(),
    }
}

/// What the server writes down.
pub(crate) struct State {
    dir: TempDir,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn server(&self, prefix: &str, mode: &str) -> ServerConfig {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/adverse_server.py");
        let args = [script.as_path(), self.path(), Path::new(mode)];
        ServerConfig {
            registry_prefix: prefix.to_owned(),
            transport: ServerTransport::Stdio {
                command: "python3".to_owned(),
                args: args.iter().map(|arg| arg.to_str().unwrap().to_owned()).collect(),
                env: BTreeMap::from([("PLUGIN_DATA".to_owned(), "/data".to_owned())]),
                cwd: None,
            },
        }
    }

    pub(crate) fn options(&self) -> McpOptions {
        let path = std::env::vars().find(|(name, _)| name == "PATH").unwrap().1;
        let ambient =
            [("PATH", path.as_str()), ("USER", "someone"), ("OPENAI_API_KEY", "sk-never-pass-this-on")];
        McpOptions {
            ambient_env: ambient.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            stderr_dir: Some(self.path().join("stderr")),
            start_timeout: LONG,
            ..McpOptions::default()
        }
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Process ids, one per start.
    pub(crate) fn starts(&self) -> Vec<u32> {
        self.lines("starts").iter().map(|pid| pid.parse().unwrap()).collect()
    }

    /// The tools that were called, in order, and the key of each call.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let parse = |line: &String| serde_json::from_str::<Value>(line).unwrap();
        self.lines("calls").iter().map(parse).map(|call| (text(&call["tool"]), text(&call["key"]))).collect()
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.lines("cancelled").len()
    }
}

/// Whether a process exists; a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// Waits until the condition holds; fails after [`LONG`].
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + LONG;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn nothing() -> Value {
    json!({})
}
