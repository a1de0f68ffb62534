//! Where measurements happen: folders, configurations, servers, and how much effort to spend.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;
use tokio::sync::OnceCell;

use super::{
    child::Child,
    cost::Cost,
    parts::{Floor, Part},
};
use crate::failure::Failure;

/// A model that answers at once.
pub(super) const ONE_TURN: &str = "[[turns]]\ntext = \"Hello.\"\n";
/// A model that calls one tool and then answers.
pub(super) const ONE_TOOL: &str = "[[turns]]\nwhen = { last_is = \"tool_result\" }\ntext = \"It is fine.\"\n\n\
    [[turns]]\ncalls = [{ name = \"bench/policy.lookup\", arguments = { topic = \"damaged on arrival\" } }]\n";

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Repetitions before anything counts, at most.
    pub(super) warm_up: usize,
    /// Tasks whose commits and bytes are counted.
    pub(super) counted: usize,
    /// Repetitions of what is measured one after another, at most.
    pub(super) samples: usize,
    /// Time for them, at most.
    pub(super) samples_time: Duration,
    /// How long a load lasts.
    pub(super) load_time: Duration,
    /// Rounds with one subscriber, and with a thousand.
    pub(super) wake_rounds: (usize, usize),
    pub(super) parked: usize,
    pub(super) listed: usize,
    pub(super) starts: usize,
    /// Time for one row; a row that takes longer fails.
    pub(super) row_time: Duration,
}

impl Effort {
    pub(super) const FULL: Self = Self {
        warm_up: 200,
        counted: 100,
        samples: 2_000,
        samples_time: Duration::from_secs(8),
        load_time: Duration::from_secs(6),
        wake_rounds: (200, 20),
        parked: 10_000,
        listed: 100_000,
        starts: 20,
        row_time: Duration::from_secs(60),
    };
    pub(super) const QUICK: Self = Self {
        warm_up: 20,
        counted: 20,
        samples: 100,
        samples_time: Duration::from_millis(600),
        load_time: Duration::from_millis(600),
        wake_rounds: (10, 1),
        parked: 500,
        listed: 5_000,
        starts: 3,
        row_time: Duration::from_secs(6),
    };
}

/// The place and the means.
pub(super) struct Lab {
    pub(super) program: PathBuf,
    pub(super) effort: Effort,
    folder: PathBuf,
    one_turn: OnceCell<Cost>,
    one_tool: OnceCell<Cost>,
}

/// A server of the product that is measured.
pub(super) struct Setup<'a> {
    /// Names its folder.
    pub(super) name: &'a str,
    /// The model's turns.
    pub(super) script: &'a str,
    /// `delegated` or `conversation`.
    pub(super) lifecycle: &'a str,
    /// Whether the tool servers of the demo run.
    pub(super) tools: bool,
}

impl Lab {
    /// Everything is kept below this folder, which is there.
    pub(super) fn new(program: PathBuf, folder: PathBuf, effort: Effort) -> Self {
        Self { program, effort, folder, one_turn: OnceCell::new(), one_tool: OnceCell::new() }
    }

    /// What a task of one turn writes.
    pub(super) async fn one_turn(&self) -> Result<Cost, Failure> {
        let setup = Setup { name: "cost-turn", script: ONE_TURN, lifecycle: "delegated", tools: false };
        self.one_turn.get_or_try_init(|| Cost::find(self, &setup)).await.copied()
    }

    /// What a task of two turns with a tool writes.
    pub(super) async fn one_tool(&self) -> Result<Cost, Failure> {
        let setup = Setup { name: "cost-tool", script: ONE_TOOL, lifecycle: "delegated", tools: true };
        self.one_tool.get_or_try_init(|| Cost::find(self, &setup)).await.copied()
    }

    /// Starts the product; what an earlier server of this name left is found again.
    pub(super) async fn serve(&self, setup: &Setup<'_>) -> Result<Child, Failure> {
        Child::serve(&self.program, &self.configure(setup)?).await
    }

    /// Starts the product with more tables in its configuration.
    pub(super) async fn serve_with(&self, setup: &Setup<'_>, tables: &str) -> Result<Child, Failure> {
        let config = self.configure(setup)?;
        let text = std::fs::read_to_string(&config)
            .map_err(|e| Failure::general(format!("cannot read {}: {e}", config.display())))?;
        write(&config, &format!("{text}\n{tables}"))?;
        Child::serve(&self.program, &config).await
    }

    /// Starts the product so that it tells of its commits.
    pub(super) async fn serve_stamped(&self, setup: &Setup<'_>) -> Result<Child, Failure> {
        Child::part(&self.program, &Part::Stamped { config: self.configure(setup)? }).await
    }

    /// Starts the floor; its tasks write as much as this.
    pub(super) async fn floor(&self, name: &str, cost: Cost) -> Result<Child, Failure> {
        let floor = Floor {
            store: self.folder(&format!("floor-{name}"))?.join("state.sqlite3"),
            commits: cost.commits,
            bytes: cost.bytes_per_commit(),
        };
        Child::part(&self.program, &Part::Floor(floor)).await
    }

    /// The store of the server of this name.
    pub(super) fn store(&self, name: &str) -> Result<PathBuf, Failure> {
        Ok(self.folder(name)?.join("state.sqlite3"))
    }

    fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.join(name);
        private_folder(&folder)?;
        Ok(folder)
    }

    fn configure(&self, setup: &Setup<'_>) -> Result<PathBuf, Failure> {
        let folder = self.folder(setup.name)?;
        let model = folder.join("model.toml");
        write(&model, setup.script)?;
        let plugins = if setup.tools { vec![plugin(&folder)?.display().to_string()] } else { Vec::new() };
        let config = folder.join("tiny-harness.toml");
        let text = format!(
            "plugins = {plugins}\n\n[server]\nbind = \"127.0.0.1:0\"\nanonymous = \"bench\"\n\
             lifecycle = {lifecycle}\nrate_limit_per_minute = 0\n\n[store]\nsqlite_path = {store}\n\n\
             [model]\nprovider = \"scripted\"\n\n[model.scripted]\npath = {model}\n",
            plugins = json!(plugins),
            lifecycle = json!(setup.lifecycle),
            store = json!(self.store(setup.name)?.display().to_string()),
            model = json!(model.display().to_string()),
        );
        write(&config, &text)?;
        Ok(config)
    }
}

/// A plugin with a tool server of the demo.
fn plugin(folder: &Path) -> Result<PathBuf, Failure> {
    let plugin = folder.join("plugin");
    private_folder(&plugin)?;
    let manifest = json!({
        "$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
        "name": "bench", "version": "0.1.0", "description": "A tool to measure.",
    });
    let servers = json!({
        "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
        "mcpServers": {"policy": {
            "type": "stdio", "command": "tiny-harness",
            "args": ["mcp-demo", "policy", "--data", "${PLUGIN_DATA}"],
        }},
    });
    write(&plugin.join("plugin.json"), &manifest.to_string())?;
    write(&plugin.join("mcp.json"), &servers.to_string())?;
    Ok(plugin)
}

/// A folder that only its owner may enter.
pub(super) fn private_folder(path: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| Failure::general(format!("cannot create {}: {e}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| Failure::general(format!("cannot write {}: {e}", path.display())))
}
