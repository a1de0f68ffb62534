//! A harness to test: its configuration, its model and its plugins in a folder of its own, served on a free port.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use harness_testkit::{Ended, PostgresServer, Process, Program};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{Api, Binding};

/// Name space directory and prefix of this harness.
pub(crate) const NAMESPACE: &str = "io.github.madarauchiha-314.tiny-harness";
const PLUGIN_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
const MCP_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";
/// A tool server that misbehaves on request.
pub(crate) const ADVERSE_SERVER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../harness-mcp/tests/fixtures/adverse_server.py");

/// The program under test.
pub(crate) fn tiny_harness<const N: usize>(args: [&str; N]) -> Program {
    Program::new(env!("CARGO_BIN_EXE_tiny-harness")).args(args)
}

/// A folder with everything that a server needs.
pub(crate) struct Rig {
    folder: TempDir,
    lifecycle: &'static str,
    plugins: Vec<PathBuf>,
    server: String,
    tables: String,
    store_lines: Option<String>,
}

impl Rig {
    /// A harness whose model says this; see `docs/scripted-models.md`. Its tasks end with their answer.
    pub(crate) fn new(script: &str) -> Self {
        let rig = Self {
            folder: tempfile::tempdir().unwrap(),
            lifecycle: "delegated",
            plugins: Vec::new(),
            server: String::new(),
            tables: String::new(),
            store_lines: None,
        };
        fs::write(rig.path("model.toml"), script).unwrap();
        let path = rig.path("model.toml");
        rig.tables(&format!("[model]\nprovider = \"scripted\"\n[model.scripted]\npath = {path:?}\n"))
    }

    /// A harness without a model; `tables` has to configure one.
    pub(crate) fn without_model(tables: &str) -> Self {
        let mut rig = Self::new("");
        rig.tables.clear();
        rig.tables(tables)
    }

    /// Tasks wait for the next message instead of ending.
    pub(crate) fn conversations(mut self) -> Self {
        self.lifecycle = "conversation";
        self
    }

    /// Adds lines to `[server]`.
    pub(crate) fn server(mut self, lines: &str) -> Self {
        self.server.push_str(lines);
        self.server.push('\n');
        self
    }

    /// Adds tables.
    pub(crate) fn tables(mut self, text: &str) -> Self {
        self.tables.push_str(text);
        self.tables.push('\n');
        self
    }

    /// Keeps tasks on a PostgreSQL server and not in a file.
    pub(crate) fn postgres(mut self, port: u16) -> Self {
        let user = PostgresServer::USER;
        self.store_lines =
            Some(format!("[store.postgres]\nport = {port}\ndatabase = \"postgres\"\nuser = {user:?}\n"));
        self
    }

    /// Adds a plugin with these `mcpServers`.
    pub(crate) fn plugin(mut self, name: &str, servers: &Value) -> Self {
        let folder = self.path(name);
        fs::create_dir_all(&folder).unwrap();
        let manifest = json!({"$schema": PLUGIN_SCHEMA, "name": name, "version": "1.0.0"});
        fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
        let mcp = json!({"$schema": MCP_SCHEMA, "mcpServers": servers});
        fs::write(folder.join("mcp.json"), mcp.to_string()).unwrap();
        self.plugins.push(folder);
        self
    }

    /// Adds a plugin folder as it is.
    pub(crate) fn plugin_folder(mut self, folder: PathBuf) -> Self {
        self.plugins.push(folder);
        self
    }

    /// Goes on with these plugins, which were added before, in this order.
    pub(crate) fn only_plugins(&mut self, names: &[&str]) {
        self.plugins = names.iter().map(|name| self.path(name)).collect();
    }

    /// Adds the plugin `odd` with the misbehaving server `tools` in this mode; what it saw is in `seen`.
    pub(crate) fn adverse(self, mode: &str) -> Self {
        fs::create_dir(self.path("seen")).unwrap();
        let args = json!([ADVERSE_SERVER, self.path("seen"), mode]);
        self.plugin("odd", &json!({"tools": {"type": "stdio", "command": "python3", "args": args}}))
    }

    /// Calls of this tool of the misbehaving server wait from here on.
    pub(crate) fn hold(&self, tool: &str) {
        fs::write(self.path("seen").join(format!("hold-{tool}")), "").unwrap();
    }

    /// They go on.
    pub(crate) fn release(&self, tool: &str) {
        fs::remove_file(self.path("seen").join(format!("hold-{tool}"))).unwrap();
    }

    /// How often a tool of the misbehaving server was called.
    pub(crate) fn called(&self, tool: &str) -> usize {
        let name = |line: &String| serde_json::from_str::<Value>(line).unwrap()["tool"] == tool;
        self.seen("calls").iter().filter(|line| name(line)).count()
    }

    /// Lines of a file of the misbehaving server: `starts`, `calls`, `cancelled`.
    pub(crate) fn seen(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("seen").join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("state.sqlite3")
    }

    /// Writes the configuration and returns its file.
    pub(crate) fn config(&self) -> PathBuf {
        let file = self.path("tiny-harness.toml");
        let store = self.store_lines.clone();
        let store = store.unwrap_or_else(|| format!("[store]\nsqlite_path = {:?}\n", self.store()));
        let text = format!(
            "plugins = {plugins:?}\n\n[server]\nbind = \"127.0.0.1:0\"\nlifecycle = \"{lifecycle}\"\n\
             rate_limit_per_minute = 0\n{server}\n[card]\nname = \"rig\"\n\n[o11y]\nlog_level = \"DEBUG\"\n\n\
             {store}\n{tables}",
            plugins = self.plugins,
            lifecycle = self.lifecycle,
            server = self.server,
            tables = self.tables,
        );
        fs::write(&file, text).unwrap();
        file
    }

    /// Starts the server and waits until it serves.
    pub(crate) async fn serve(&self) -> Server {
        self.serve_with([]).await
    }

    /// Starts the server with further arguments.
    pub(crate) async fn serve_with<const N: usize>(&self, args: [&str; N]) -> Server {
        Server::start(&self.config(), args).await
    }
}

/// A serving process.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) url: String,
}

impl Server {
    /// Serves a configuration; its port should be 0.
    pub(crate) async fn start<const N: usize>(config: &Path, args: [&str; N]) -> Self {
        let config = config.display().to_string();
        Self::launch(tiny_harness(["serve", "--config", &config]).args(args)).await
    }

    /// Starts a program that is a `serve`, and waits until it serves.
    pub(crate) async fn launch(program: Program) -> Self {
        let mut process = program.start();
        let said = process.stderr_contains("\nserving ").await;
        let line = said.lines().find(|line| line.starts_with("serving ")).unwrap();
        let url = line.rsplit_once(" at ").unwrap().1.to_owned();
        Self { process, url }
    }

    /// What this participant can do over this binding.
    pub(crate) fn api(&self, binding: Binding, participant: &str) -> Api {
        Api::new(&self.url, binding, participant)
    }

    /// The same over JSON-RPC, as `ada`.
    pub(crate) fn ada(&self) -> Api {
        self.api(Binding::JsonRpc, "ada")
    }

    /// Log lines so far with this message.
    pub(crate) fn logged(&self, message: &str) -> Vec<Value> {
        logged(&self.process.stderr(), message)
    }

    /// How many model calls it has begun.
    pub(crate) fn model_calls(&self) -> usize {
        begun(&self.process.stderr()).iter().filter(|run| run["activity"] == "invoke_model.v1").count()
    }

    pub(crate) async fn kill(self) -> Ended {
        let ended = self.process.kill().await;
        assert!(ended.was_killed(), "{ended:?}");
        ended
    }

    /// Stops it in order.
    pub(crate) async fn stop(self) -> Ended {
        self.process.terminate();
        self.process.ended().await
    }
}

/// Lines of a log with this message.
pub(crate) fn logged(log: &str, message: &str) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["msg"] == message).collect()
}

/// Activities that a log says were begun.
pub(crate) fn begun(log: &str) -> Vec<Value> {
    logged(log, "activity begins")
}

/// Waits until something holds.
pub(crate) async fn until<F: AsyncFnMut() -> bool>(what: &str, mut holds: F) {
    let tries = 900;
    for _ in 0..tries {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never came true: {what}");
}
