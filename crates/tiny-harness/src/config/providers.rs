//! Which providers there are, which one is the default, and whether each can be used.

use std::{path::PathBuf, time::Duration};

use harness_model::Secret;
use harness_providers::check_base_url;

use super::{
    environment::Environment,
    file_models,
    models::{Anthropic, Api, Compatible, Model, OpenAi},
    problem::quoted,
    reader::{Reader, Table},
    section::{Section, Shown},
};

const OPENAI: &str = "openai";
const ANTHROPIC: &str = "anthropic";
pub(super) const SCRIPTED: &str = "scripted";
pub(super) const REPLAY: &str = "replay";
/// Stands in when nothing at all is configured.
const UNCONFIGURED: &str = "unconfigured";
/// Names that `[providers.NAME]` must leave alone.
const RESERVED: [&str; 5] = [OPENAI, ANTHROPIC, SCRIPTED, UNCONFIGURED, REPLAY];
const OPENAI_KEY: &str = "OPENAI_API_KEY";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com/v1";
const ANTHROPIC_MODEL: &str = "claude-opus-5-5";
/// Windows of Anthropic's models; unknown ones have the last.
const ANTHROPIC_WINDOWS: [(&str, u64); 2] = [("claude-opus-5-5", 1_000_000), ("claude-fable-5-1", 1_000_000)];
const ANTHROPIC_WINDOW: u64 = 200_000;
/// Windows of OpenAI's models; unknown ones have the last.
const OPENAI_WINDOWS: [(&str, u64); 3] =
    [("gpt-6.1-sol", 1_050_000), ("gpt-6-astra", 1_050_000), ("gpt-6-luna", 400_000)];
const OPENAI_WINDOW: u64 = 400_000;
/// Window of a model that nothing is known about.
const UNKNOWN_WINDOW: u64 = 32_768;
const NAME_CHARS_MAX: usize = 32;

/// A provider that can be used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Provider {
    /// Name in the configuration.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: ProviderKind,
}

/// Kinds of providers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProviderKind {
    /// Answers every message by saying how to configure a model: what serves when there is no file and no key.
    Unconfigured,
    /// Recorded exchanges.
    Replay {
        /// The folder.
        path: PathBuf,
    },
    /// A file of turns.
    Scripted {
        /// The file.
        path: PathBuf,
    },
    /// A server that speaks one of the protocols.
    Http(Endpoint),
}

/// How a server is called.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Endpoint {
    /// The protocol.
    pub(crate) api: Api,
    /// Where the API is; checked.
    pub(crate) base_url: String,
    /// Sent as a bearer token; `None` sends no `Authorization` at all.
    pub(crate) api_key: Option<Secret>,
    /// Default model.
    pub(crate) model: String,
    /// Further models that a task may choose.
    pub(crate) models: Vec<String>,
    /// Reasoning efforts that a task may choose.
    pub(crate) reasoning_efforts: Vec<String>,
    /// The longest silence.
    pub(crate) timeout: Duration,
    /// Tokens of one answer.
    pub(crate) max_output_tokens: u32,
    /// Tokens that the default model can read and write.
    pub(crate) context_window_tokens: u64,
    /// Whether answers are streamed.
    pub(crate) stream: bool,
}

/// The providers and what the file says about them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Models {
    /// Name of the one that answers when a task does not choose.
    pub(crate) default: String,
    /// Those that can be used; the default is among them.
    pub(crate) providers: Vec<Provider>,
    /// Provider and model of those that are asked when the ones before them fail.
    pub(crate) fallback: Vec<(String, Option<String>)>,
    /// Tries of one model before the next one is asked.
    pub(crate) fallback_after: u32,
    /// Where exchanges are written down.
    pub(crate) record: Option<PathBuf>,
    /// The tables, as they count, by their path in the file.
    pub(super) tables: Tables,
}

impl Models {
    /// The default provider.
    pub(crate) fn default_provider(&self) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == self.default)
    }

    /// Every name under which a task may choose a model: `provider:model`, and `model` for the default provider.
    pub(crate) fn selectable(&self) -> Vec<String> {
        let mut names = Vec::new();
        for provider in &self.providers {
            let ProviderKind::Http(endpoint) = &provider.kind else { continue };
            for model in std::iter::once(&endpoint.model).chain(&endpoint.models) {
                names.push(format!("{}:{model}", provider.name));
                if provider.name == self.default {
                    names.push(model.clone());
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// Every reasoning effort that some provider allows.
    pub(crate) fn reasoning_efforts(&self) -> Vec<String> {
        let endpoint = |provider: &Provider| match &provider.kind {
            ProviderKind::Http(endpoint) => endpoint.reasoning_efforts.clone(),
            ProviderKind::Scripted { .. } | ProviderKind::Replay { .. } | ProviderKind::Unconfigured => {
                Vec::new()
            }
        };
        let mut efforts: Vec<String> = self.providers.iter().flat_map(endpoint).collect();
        efforts.sort();
        efforts.dedup();
        efforts
    }
}

/// One configured provider before it is known whether it can be used.
pub(super) struct Candidate<'a> {
    pub(super) name: String,
    pub(super) table: Table<'a>,
    /// `Err` holds why it cannot be used and what to do.
    pub(super) usable: Result<ProviderKind, (String, String)>,
}

/// Reads every table about models and decides.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
    notes: &mut Vec<String>,
) -> Models {
    let model_table = reader.table(root, "model");
    let mut model: Model = reader.section(&model_table, &[SCRIPTED, REPLAY]);
    let mut tables = Tables::new();
    let mut candidates = Vec::new();
    candidates.extend(file_models::scripted(reader, &model_table, &mut tables));
    candidates.extend(file_models::replay(reader, &model_table, &mut tables));
    candidates.extend(openai(reader, root, environment, &mut tables));
    candidates.extend(anthropic(reader, root, environment, &mut tables));
    candidates.extend(compatible(reader, root, environment, &mut tables));
    if candidates.is_empty() && !reader.has_file() {
        let usable = Ok(ProviderKind::Unconfigured);
        candidates.push(Candidate {
            name: UNCONFIGURED.to_owned(),
            table: reader.table(root, SCRIPTED),
            usable,
        });
        let what =
            format!("no model is configured: every message is answered with what to do; set {OPENAI_KEY}");
        notes.push(format!("{what}, or start with --config FILE"));
    }
    if environment.has("OPENAI_BASE_URL") {
        notes.push("OPENAI_BASE_URL is not used; set base_url in [openai] instead".to_owned());
    }
    model.provider = choose(reader, &model_table, model.provider.as_deref(), &candidates);
    tables.insert(0, ("model".to_owned(), model.show()));
    let default = model.provider.unwrap_or_default();
    let mut providers = Vec::new();
    for candidate in candidates {
        match candidate.usable {
            Ok(kind) => providers.push(Provider { name: candidate.name, kind }),
            Err((why, remedy)) if candidate.name == default => {
                reader.refuse_table(&candidate.table, why, remedy)
            }
            Err((why, remedy)) => {
                notes.push(format!("provider {} is left out: {why}; {remedy}", candidate.name))
            }
        }
    }
    let fallback = fallback(reader, &model_table, &model.fallback, &providers);
    Models {
        default,
        providers,
        fallback,
        fallback_after: model.fallback_after,
        record: model.record,
        tables,
    }
}

/// The models that are asked when the first one fails: provider and model.
fn fallback(
    reader: &mut Reader<'_>,
    table: &Table<'_>,
    names: &[String],
    providers: &[Provider],
) -> Vec<(String, Option<String>)> {
    let mut models = Vec::new();
    for name in names {
        let (provider, model) = match name.split_once(':') {
            Some((provider, model)) => (provider, Some(model.to_owned())),
            None => (name.as_str(), None),
        };
        if providers.iter().any(|known| known.name == provider) {
            models.push((provider.to_owned(), model));
            continue;
        }
        let known: Vec<&str> = providers.iter().map(|known| known.name.as_str()).collect();
        let message = format!("`fallback` names {}, whose provider cannot be used", quoted(name));
        reader.refuse(table, "fallback", message, format!("use one of {}", known.join(", ")));
    }
    models
}

/// The default provider: the one that is named, else the only one, else OpenAI.
fn choose(
    reader: &mut Reader<'_>,
    table: &Table<'_>,
    named: Option<&str>,
    candidates: &[Candidate<'_>],
) -> Option<String> {
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    let listed = names.join(", ");
    match (named, names.as_slice()) {
        (Some(name), names) if names.contains(&name) => Some(name.to_owned()),
        (Some(name), _) => {
            let (message, remedy) = missing(name, &listed);
            reader.refuse(table, "provider", message, remedy);
            None
        }
        (None, [only]) => Some((*only).to_owned()),
        (None, []) => {
            reader.refuse_variable(
                OPENAI_KEY,
                "no model is configured".to_owned(),
                format!(
                    "set {OPENAI_KEY}, or add a [providers.NAME] table with base_url and model, or a [model.scripted] \
                     table with path; `tiny-harness demo` needs none of them"
                ),
            );
            None
        }
        // Tables that only the environment stands for do not compete with those of the file.
        (None, _) => {
            let of_file: Vec<&Candidate<'_>> =
                candidates.iter().filter(|candidate| candidate.table.is_present()).collect();
            match of_file.as_slice() {
                [only] => Some(only.name.clone()),
                _ if names.contains(&OPENAI) => Some(OPENAI.to_owned()),
                _ => {
                    let message = format!("several providers are configured ({listed}) and none is chosen");
                    reader.refuse(
                        table,
                        "provider",
                        message,
                        "add `provider = \"...\"` to [model]".to_owned(),
                    );
                    None
                }
            }
        }
    }
}

/// What to say about a provider that is chosen and not there.
fn missing(name: &str, listed: &str) -> (String, String) {
    let message = format!("`provider` names {}, which is not configured", quoted(name));
    let remedy = match name {
        OPENAI => format!("set {OPENAI_KEY} or add an [openai] table"),
        ANTHROPIC => "add an [anthropic] table".to_owned(),
        SCRIPTED => "add a [model.scripted] table with path".to_owned(),
        REPLAY => "add a [model.replay] table with path".to_owned(),
        _ if listed.is_empty() => format!("add a [providers.{name}] table with base_url and model"),
        _ => format!("add a [providers.{name}] table, or choose one of {listed}"),
    };
    (message, remedy)
}

/// Tables of the file by their path.
pub(super) type Tables = Vec<(String, Shown)>;

fn openai<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
    tables: &mut Tables,
) -> Option<Candidate<'a>> {
    let table = reader.table(root, OPENAI);
    let api_key = environment.secret(OPENAI_KEY, reader);
    if !table.is_present() && !environment.has(OPENAI_KEY) {
        return None;
    }
    let section: OpenAi = reader.section(&table, &[]);
    tables.push((OPENAI.to_owned(), section.show()));
    let known =
        Known { windows: &OPENAI_WINDOWS, other_window: OPENAI_WINDOW, url: OPENAI_URL, key: OPENAI_KEY };
    let endpoint = Endpoint {
        api: section.api,
        base_url: known.url(section.base_url.as_deref()),
        api_key,
        context_window_tokens: known.window(
            section.context_window_tokens,
            section.base_url.is_some(),
            &section.model,
        ),
        model: section.model,
        models: section.models,
        reasoning_efforts: section.reasoning_efforts,
        timeout: section.timeout,
        max_output_tokens: section.max_output_tokens,
        stream: section.stream,
    };
    check_plain_http(reader, &table, &endpoint);
    let usable = known.usable(OPENAI, section.base_url.is_some(), environment, endpoint);
    Some(Candidate { name: OPENAI.to_owned(), table, usable })
}

/// What is known about a company's own API.
struct Known {
    windows: &'static [(&'static str, u64)],
    /// Window of its other models.
    other_window: u64,
    url: &'static str,
    /// The variable that holds its key.
    key: &'static str,
}

impl Known {
    fn url(&self, set: Option<&str>) -> String {
        set.unwrap_or(self.url).to_owned()
    }

    fn window(&self, set: Option<u64>, custom: bool, model: &str) -> u64 {
        let listed = self.windows.iter().find(|(name, _)| *name == model).map(|(_, window)| *window);
        set.or(listed).unwrap_or(if custom { UNKNOWN_WINDOW } else { self.other_window })
    }

    /// Its own API needs the key; another server may not. A key that is set and cannot be used is a problem of its own.
    fn usable(
        &self,
        name: &str,
        custom: bool,
        environment: Environment<'_>,
        endpoint: Endpoint,
    ) -> Result<ProviderKind, (String, String)> {
        if custom || environment.has(self.key) {
            return Ok(ProviderKind::Http(endpoint));
        }
        let key = self.key;
        Err((
            format!("provider `{name}` needs a key and {key} is not set"),
            format!("set {key}, or set base_url to a server that needs none"),
        ))
    }
}

fn anthropic<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
    tables: &mut Tables,
) -> Option<Candidate<'a>> {
    let table = reader.table(root, ANTHROPIC);
    let api_key = environment.secret(ANTHROPIC_KEY, reader);
    if !table.is_present() && !environment.has(ANTHROPIC_KEY) {
        return None;
    }
    let section =
        if table.is_present() { reader.section(&table, &[]) } else { Anthropic::with_model(ANTHROPIC_MODEL) };
    tables.push((ANTHROPIC.to_owned(), section.show()));
    let known = Known {
        windows: &ANTHROPIC_WINDOWS,
        other_window: ANTHROPIC_WINDOW,
        url: ANTHROPIC_URL,
        key: ANTHROPIC_KEY,
    };
    let endpoint = Endpoint {
        api: Api::Messages,
        base_url: known.url(section.base_url.as_deref()),
        api_key,
        context_window_tokens: known.window(
            section.context_window_tokens,
            section.base_url.is_some(),
            &section.model,
        ),
        model: section.model,
        models: section.models,
        reasoning_efforts: section.reasoning_efforts,
        timeout: section.timeout,
        max_output_tokens: section.max_output_tokens,
        stream: section.stream,
    };
    check_plain_http(reader, &table, &endpoint);
    let usable = known.usable(ANTHROPIC, section.base_url.is_some(), environment, endpoint);
    Some(Candidate { name: ANTHROPIC.to_owned(), table, usable })
}

fn compatible<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
    tables: &mut Tables,
) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for (name, table) in reader.named_tables(root, "providers") {
        if !valid_name(&name) {
            reader.refuse_table(
                &table,
                format!("{} cannot be the name of a provider", quoted(&name)),
                format!(
                    "use up to {NAME_CHARS_MAX} lower-case letters, digits, `-` and `_`, and none of {}",
                    RESERVED.join(", ")
                ),
            );
        }
        let section: Compatible = reader.section(&table, &[]);
        tables.push((format!("providers.{name}"), section.show()));
        let default_variable = format!("{}_API_KEY", name.to_ascii_uppercase().replace('-', "_"));
        let variable = section.api_key_env.clone().unwrap_or(default_variable);
        let key_missing = section.api_key_env.is_some() && !environment.has(&variable);
        let endpoint = Endpoint {
            api: section.api,
            base_url: section.base_url,
            api_key: environment.secret(&variable, reader),
            model: section.model,
            models: section.models,
            reasoning_efforts: section.reasoning_efforts,
            timeout: section.timeout,
            max_output_tokens: section.max_output_tokens,
            context_window_tokens: section.context_window_tokens.unwrap_or(UNKNOWN_WINDOW),
            stream: section.stream,
        };
        check_plain_http(reader, &table, &endpoint);
        let usable = if key_missing {
            Err((
                format!("provider `{name}` needs a key and {variable} is not set"),
                format!("set {variable}, or remove api_key_env"),
            ))
        } else {
            Ok(ProviderKind::Http(endpoint))
        };
        candidates.push(Candidate { name, table, usable });
    }
    candidates
}

/// A key must not travel in the clear. Other faults of the URL were found when it was read.
fn check_plain_http(reader: &mut Reader<'_>, table: &Table<'_>, endpoint: &Endpoint) {
    if endpoint.api_key.is_none() || check_base_url(&endpoint.base_url, false).is_err() {
        return;
    }
    if let Err(error) = check_base_url(&endpoint.base_url, true) {
        reader.refuse(
            table,
            "base_url",
            format!("`base_url` {error}"),
            "write `https://`, or unset the key if the server needs none".to_owned(),
        );
    }
}

fn valid_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
        && !RESERVED.contains(&name)
}
