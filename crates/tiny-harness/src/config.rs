//! The configuration: one TOML file and the environment, read once, checked as a whole before anything starts.
//!
//! Every problem is found in one pass and says file, line, key and what to do. A key is declared in one place (see
//! `config/section.rs`), from which reading, `config show`, the messages and the reference in `docs/configuration.md`
//! follow.

mod checks;
mod duration;
mod environment;
mod file_models;
mod models;
mod operation;
mod postgres;
mod problem;
mod providers;
mod reader;
mod reference;
mod section;
mod security;
mod server;
mod setting;
mod show;
mod temporal;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use harness_model::{Redactor, Secret};
use toml::de::DeTable;

pub(crate) use environment::Secrets;
pub(crate) use models::Api;
pub(crate) use operation::{
    AgentsPolicy, Budget, Context, Heartbeat, Limits, O11y, Price, Retention, RetryPolicy, Store,
};
pub(crate) use postgres::Postgres;
pub(crate) use problem::ConfigProblem;
pub(crate) use providers::{Endpoint, Models, Provider, ProviderKind};
pub(crate) use security::Security;
pub(crate) use server::{Agent, Card, CardSkill, Server};
pub(crate) use setting::BindAddress;
pub(crate) use temporal::{Mode as TemporalMode, TemporalConfig};

use environment::Environment;
use problem::quoted;
use reader::{Reader, Table};
use server::Top;

/// Bytes of a configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Participant that a request without an assertion acts as when there is no file.
const LOCAL_USER: &str = "local-user";
/// Tables at the top of the file.
const TABLES: [&str; 18] = [
    "agents",
    "server",
    "security",
    "card",
    "model",
    "openai",
    "anthropic",
    "providers",
    "store",
    "context",
    "limits",
    "budget",
    "prices",
    "retries",
    "agents_policy",
    "heartbeat",
    "retention",
    "o11y",
];
/// Names under `[retries.per_activity]`.
const ACTIVITIES: [&str; 18] = [
    "intake",
    "assemble_context",
    "compaction_trigger",
    "compact",
    "invoke_llm",
    "invoke_model",
    "invoke_tool",
    "decide_completion",
    "persist",
    "send_channel_message",
    "emit_event",
    "dispatch_hooks",
    "run_remote_agent_turn",
    "poll_channels",
    "monitor_snapshot",
    "retention_sweep",
    "start_agent_task",
    "cancel_remote_task",
];
/// The model call, and what it was called in older configurations.
const MODEL_ACTIVITY: &str = "invoke_model";
const OLD_MODEL_ACTIVITY: &str = "invoke_llm";
/// Keys that are read and checked and that nothing in this build acts on yet.
const WITHOUT_EFFECT: [&str; 13] = [
    "agents",
    "retention.plans",
    "retention.state",
    "retention.channel_messages",
    "retention.compactions",
    "agents_policy",
    "server.ui_dir",
    "server.bridge_interval",
    "context.history_event_bound",
    "o11y.otlp_endpoint",
    "o11y.trace_file",
    "o11y.langfuse_host",
    "o11y.service_name",
];

/// The whole configuration. Paths are absolute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// The file it was read from.
    pub(crate) file: Option<PathBuf>,
    /// `[server]`.
    pub(crate) server: Server,
    /// `[security]`; `None` when nobody has to sign in.
    pub(crate) security: Option<Security>,
    /// `[card]`.
    pub(crate) card: Card,
    /// `[[card.skills]]`; ids are unique.
    pub(crate) card_skills: Vec<CardSkill>,
    /// The other agents; ids are unique.
    pub(crate) agents: Vec<Agent>,
    /// Which models there are.
    pub(crate) models: Models,
    /// `[store]`.
    pub(crate) store: Store,
    /// `[store.postgres]`; `None` when tasks are kept in the SQLite file.
    pub(crate) postgres: Option<Postgres>,
    /// `[context]`.
    pub(crate) context: Context,
    /// `[limits]`.
    pub(crate) limits: Limits,
    /// `[budget]`.
    pub(crate) budget: Budget,
    /// `[prices]`, by `provider:model`.
    pub(crate) prices: BTreeMap<String, Price>,
    /// `[retries]`.
    pub(crate) retries: Retries,
    /// `[temporal]`; `None` when the local engine is to run.
    pub(crate) temporal: Option<TemporalConfig>,
    /// `[agents_policy]`.
    pub(crate) agents_policy: AgentsPolicy,
    /// `[heartbeat]`.
    pub(crate) heartbeat: Heartbeat,
    /// `[retention]`.
    pub(crate) retention: Retention,
    /// `[o11y]`.
    pub(crate) o11y: O11y,
    /// Secrets that belong to no provider.
    pub(crate) secrets: Secrets,
    /// What is odd and no problem; for the log.
    pub(crate) notes: Vec<String>,
    top: Top,
    secret_values: BTreeMap<String, Secret>,
}

/// Retry policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Retries {
    /// For activities without one of their own.
    pub(crate) default: RetryPolicy,
    /// By name of the activity.
    pub(crate) per_activity: BTreeMap<String, RetryPolicy>,
}

impl Config {
    /// The plugin folders, in order.
    pub(crate) fn plugins(&self) -> &[PathBuf] {
        &self.top.plugins
    }

    /// Masks every secret of the environment, whether or not its provider is in use.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new(self.secret_values.values().cloned())
    }

    /// Where clients reach the server that listens on `bound`.
    pub(crate) fn base_url(&self, bound: SocketAddr) -> String {
        self.server.base_url.clone().unwrap_or_else(|| format!("http://{bound}"))
    }

    /// Where plugins keep data: beside the store.
    pub(crate) fn plugin_data_root(&self) -> PathBuf {
        self.store.sqlite_path.with_file_name("plugin-data")
    }
}

/// Loads the configuration. `path` is the file, if there is one; relative paths start from `cwd`.
///
/// Errors: every problem, in the order of the file. Nothing but files is touched, and nothing is started.
pub(crate) fn load(
    path: Option<&Path>,
    env: &BTreeMap<String, String>,
    cwd: &Path,
) -> Result<Config, Vec<ConfigProblem>> {
    let file = path.map(|path| path.display().to_string());
    let text = match path.map(|path| read_file(&cwd.join(path))).transpose() {
        Ok(text) => text.unwrap_or_default(),
        Err((message, remedy)) => {
            let key = file.clone().unwrap_or_default();
            return Err(vec![ConfigProblem { file: None, line: None, key, message, remedy }]);
        }
    };
    let mut reader = Reader::new(file, &text, cwd);
    let (document, errors) = DeTable::parse_recoverable(&text);
    let mut lines = BTreeSet::new();
    for error in errors {
        let at = error.span().map(|span| span.start);
        let line = at.map(|at| text.bytes().take(at).filter(|byte| *byte == b'\n').count());
        // One mistake often confuses the rest of its line.
        if lines.insert(line) {
            let remedy = "correct the line; https://toml.io describes the format".to_owned();
            reader.add(at, "<root>", format!("not valid TOML: {}", error.message()), remedy);
        }
    }
    if reader.has_problems() {
        return Err(reader.into_problems());
    }
    let mut config = read(&mut reader, document.get_ref(), Environment(env));
    config.file = path.map(Path::to_owned);
    if path.is_none() {
        config.server.anonymous = Some(LOCAL_USER.to_owned());
    }
    if reader.has_problems() { Err(reader.into_problems()) } else { Ok(config) }
}

fn read_file(path: &Path) -> Result<String, (String, String)> {
    let remedy = || "give the path of a readable TOML file with --config, or leave the option out".to_owned();
    let unreadable = |error: io::Error| {
        let message = if error.kind() == io::ErrorKind::NotFound {
            "there is no such file".to_owned()
        } else {
            format!("cannot read the file: {}", error.kind())
        };
        (message, remedy())
    };
    if path.is_dir() {
        return Err(("this is a folder, not a file".to_owned(), remedy()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(unreadable)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err((format!("the file is larger than {FILE_BYTES_MAX} bytes"), remedy()));
    }
    let text = String::from_utf8(bytes).map_err(|_| ("the file is not UTF-8 text".to_owned(), remedy()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn read<'a>(reader: &mut Reader<'a>, document: &'a DeTable<'a>, environment: Environment<'_>) -> Config {
    let root = reader.root(document);
    let known: Vec<&str> = TABLES.into_iter().chain(["temporal"]).collect();
    let top = reader.section(&root, &known);
    let mut notes = Vec::new();
    let security = security::read(reader, &root, environment);
    let server = read_server(reader, &root, security.is_some());
    let card_table = reader.table(&root, "card");
    let card = reader.section(&card_table, &["skills"]);
    let card_skills = read_unique(reader, &card_table, "skills", |skill: &CardSkill| skill.id.clone());
    let agents = read_unique(reader, &root, "agents", |agent: &Agent| agent.id.clone());
    let models = providers::read(reader, &root, environment, &mut notes);
    let retries = read_retries(reader, &root);
    let (store, postgres) = postgres::read(reader, &root, environment);
    let temporal = temporal::read(reader, &root, environment);
    let config = Config {
        file: None,
        server,
        security,
        card,
        card_skills,
        agents,
        models,
        store,
        postgres,
        context: read_table(reader, &root, "context"),
        limits: read_table(reader, &root, "limits"),
        budget: read_table(reader, &root, "budget"),
        prices: read_prices(reader, &root),
        retries,
        temporal,
        agents_policy: read_table(reader, &root, "agents_policy"),
        heartbeat: read_table(reader, &root, "heartbeat"),
        retention: read_table(reader, &root, "retention"),
        o11y: read_table(reader, &root, "o11y"),
        secrets: environment::read(environment, reader),
        notes,
        top,
        secret_values: std::mem::take(&mut reader.secrets),
    };
    with_notes(config, reader)
}

fn with_notes(mut config: Config, reader: &Reader<'_>) -> Config {
    for key in WITHOUT_EFFECT {
        let below = |set: &String| {
            set.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if reader.set.iter().any(below) {
            config.notes.push(format!("{key} is set and has no effect in this build"));
        }
    }
    config
}

fn read_prices<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> BTreeMap<String, Price> {
    let mut prices = BTreeMap::new();
    for (model, table) in reader.named_tables(root, "prices") {
        if !model.contains(':') {
            let message = format!("{} is not `provider:model`", quoted(&model));
            reader.refuse_table(
                &table,
                message,
                "write for example [prices.\"openai:gpt-6.1-sol\"]".to_owned(),
            );
        }
        let price = reader.section(&table, &[]);
        prices.insert(model, price);
    }
    prices
}

fn read_table<'a, T: section::Section>(reader: &mut Reader<'a>, root: &Table<'a>, name: &str) -> T {
    let table = reader.table(root, name);
    reader.section(&table, &[])
}

fn read_server<'a>(reader: &mut Reader<'a>, root: &Table<'a>, signed_in: bool) -> Server {
    let table = reader.table(root, "server");
    let server: Server = reader.section(&table, &[]);
    if server.anonymous.as_ref() == Some(&server.agent_id) {
        let message = "`anonymous` is the id of this agent itself".to_owned();
        reader.refuse(&table, "anonymous", message, "choose another participant id".to_owned());
    }
    if server.bind.is_loopback() {
        return server;
    }
    let bind = server.bind.to_string();
    if !server.perimeter && !signed_in {
        reader.refuse(
            &table,
            "bind",
            format!(
                "`bind` {} can be reached from other machines and nothing authenticates requests",
                quoted(&bind)
            ),
            "bind to 127.0.0.1, let callers sign in ([security]), or put an authenticating proxy in front and set \
             `perimeter = true`"
                .to_owned(),
        );
    }
    if server.base_url.is_none() {
        let why = if server.bind.is_wildcard() {
            "it is no address that others can call"
        } else {
            "others call it"
        };
        reader.refuse(
            &table,
            "base_url",
            format!("`base_url` is required when `bind` is {}: {why}", quoted(&bind)),
            "add `base_url = \"https://...\"`, the address by which clients reach this server".to_owned(),
        );
    }
    server
}

/// Reads a list of tables whose ids are unique.
fn read_unique<'a, T: section::Section>(
    reader: &mut Reader<'a>,
    parent: &Table<'a>,
    name: &str,
    id_of: impl Fn(&T) -> String,
) -> Vec<T> {
    let mut entries = Vec::new();
    let mut ids = BTreeSet::new();
    for table in reader.list_of_tables(parent, name) {
        let entry: T = reader.section(&table, &[]);
        let id = id_of(&entry);
        if !id.is_empty() && !ids.insert(id.clone()) {
            let message = format!("`id` {} is used twice in {}", quoted(&id), parent.key(name));
            reader.refuse(&table, "id", message, "give each entry an id of its own".to_owned());
        }
        entries.push(entry);
    }
    entries
}

fn read_retries<'a>(reader: &mut Reader<'a>, root: &Table<'a>) -> Retries {
    let outer = reader.table(root, "retries");
    reader.refuse_unknown(&outer, &["default", "per_activity"]);
    let default = reader.table(&outer, "default");
    let mut retries = Retries { default: read_policy(reader, &default), ..Retries::default() };
    for (activity, table) in reader.named_tables(&outer, "per_activity") {
        if !ACTIVITIES.contains(&activity.as_str()) {
            let message = format!("{} is not the name of an activity", quoted(&activity));
            reader.refuse_table(&table, message, format!("use one of {}", ACTIVITIES.join(", ")));
        }
        let policy = read_policy(reader, &table);
        let name = if activity == OLD_MODEL_ACTIVITY { MODEL_ACTIVITY.to_owned() } else { activity };
        retries.per_activity.insert(name, policy);
    }
    retries
}

fn read_policy<'a>(reader: &mut Reader<'a>, table: &Table<'a>) -> RetryPolicy {
    let policy: RetryPolicy = reader.section(table, &[]);
    if policy.maximum_interval < policy.initial_interval
        && !reader.has_problem_at(&table.key("maximum_interval"))
    {
        let message = "`maximum_interval` is shorter than `initial_interval`".to_owned();
        reader.refuse(table, "maximum_interval", message, "make it at least as long".to_owned());
    }
    policy
}
