//! `tiny-harness doctor`: finds out what works here, and says what to do about what does not.

#[cfg(feature = "temporal")]
mod temporal;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use futures::StreamExt;
use harness_a2a::JwksSource;
use harness_model::{ItemPart, ModelOutput, one_line, truncate_chars};
use harness_ports::{
    InputItem, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, RequestMeta, TaskGroup,
    ToolSource,
};
use harness_store::PostgresUse;
use tokio::time::Instant;

use crate::{
    config::{Config, Provider, ProviderKind},
    failure::Failure,
    harness::{OpenStore, StartOptions, models, plugins},
    output,
};

/// How long one model call may take here.
const PATIENCE: Duration = Duration::from_secs(60);
/// Output tokens of the call: enough for one word, and for models that think before they speak.
const OUTPUT_TOKENS: u32 = 256;
/// Characters of what went wrong.
const REASON_CHARS_MAX: usize = 400;

/// Looks at everything, whatever fails on the way.
pub(crate) async fn run(
    config: &Config,
    env: BTreeMap<String, String>,
    program: PathBuf,
) -> Result<(), Failure> {
    let mut findings = Findings::default();
    let file =
        config.file.as_ref().map_or_else(|| "no file, defaults".to_owned(), |f| f.display().to_string());
    findings.good("configuration", &file);
    for note in &config.notes {
        findings.note("configuration", note);
    }
    store(config, &mut findings).await;
    #[cfg(feature = "temporal")]
    temporal::look(config, &mut findings).await;
    keys(config, &mut findings).await;
    tools(config, env, program, &mut findings).await;
    for provider in &config.models.providers {
        let name = format!("provider {}", provider.name);
        if provider.kind == ProviderKind::Unconfigured {
            findings
                .bad("provider", "no model is configured; set OPENAI_API_KEY, or start with --config FILE");
            continue;
        }
        match call(provider).await {
            Ok(answer) => findings.good(&name, &answer),
            Err(problem) => findings.bad(&name, &problem),
        }
    }
    findings.verdict()
}

/// What was found, printed as it is found.
#[derive(Debug, Default)]
struct Findings {
    bad: u32,
}

impl Findings {
    fn good(&self, what: &str, text: &str) {
        output::line(&format!("  ok    {what}: {}", one_line(text)));
    }

    fn note(&self, what: &str, text: &str) {
        output::line(&format!("  note  {what}: {}", one_line(text)));
    }

    fn bad(&mut self, what: &str, text: &str) {
        self.bad += 1;
        output::line(&format!("  FAIL  {what}: {}", truncate_chars(&one_line(text), REASON_CHARS_MAX)));
    }

    fn verdict(&self) -> Result<(), Failure> {
        match self.bad {
            0 => {
                output::line("everything works");
                Ok(())
            }
            1 => Err(Failure::general("one thing does not work; see FAIL above")),
            n => Err(Failure::general(format!("{n} things do not work; see FAIL above"))),
        }
    }
}

async fn store(config: &Config, findings: &mut Findings) {
    match OpenStore::open(config, PostgresUse::Shared, None).await {
        Ok(store) => {
            store.close().await;
            findings.good("store", &store.place(config));
        }
        Err(failure) => findings.bad("store", &failure.lines.join("; ")),
    }
}

/// Loads the keys that signed tokens are checked with, as serving does.
async fn keys(config: &Config, findings: &mut Findings) {
    let Some(jwt) = config.security.as_ref().and_then(|security| security.jwt.as_ref()) else { return };
    let place = match &jwt.jwks.0 {
        // What follows the path may be secret.
        JwksSource::Url(url) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
        JwksSource::File(path) => path.display().to_string(),
    };
    match jwt.jwks.0.count_keys().await {
        Ok(count) => {
            findings.good("signed tokens", &format!("usable keys of {}: {count}, from {place}", jwt.issuer));
        }
        Err(error) => {
            let remedy = "until the keys can be loaded, no signed token admits anybody";
            findings.bad("signed tokens", &format!("{place}: {error}; {remedy} (security.jwt.jwks)"));
        }
    }
}

async fn tools(config: &Config, env: BTreeMap<String, String>, program: PathBuf, findings: &mut Findings) {
    let report = harness_plugins::load_plugins(config.plugins(), &config.plugin_data_root());
    for skipped in &report.skipped {
        findings.bad("plugins", &skipped.to_string());
    }
    for plugin in &report.plugins {
        let (servers, skills) = (plugin.servers.len(), plugin.skills.len());
        findings
            .good(&format!("plugin {}", plugin.name), &format!("tool servers: {servers}, skills: {skills}"));
    }
    let group = TaskGroup::new();
    let options = StartOptions { env, program, on_commit: None, observer: None };
    let (tools, problems) = plugins::start_servers(config, &report.plugins, &options, &group).await;
    for problem in &problems {
        findings.bad(&format!("tool server {}", problem.server), &problem.to_string());
    }
    findings.good("tools", &format!("{} in all", tools.catalogue().len()));
    tools.shutdown().await;
    group.shutdown(Duration::from_secs(5)).await;
}

/// One call that costs next to nothing: the model is asked for one word.
async fn call(provider: &Provider) -> Result<String, String> {
    let set_up = models::one(provider).map_err(|failure| failure.lines.join("; "))?;
    let info = set_up.info();
    let place = format!("{} at {} ({})", info.model, info.endpoint, info.api);
    if matches!(
        provider.kind,
        ProviderKind::Scripted { .. } | ProviderKind::Replay { .. } | ProviderKind::Unconfigured
    ) {
        return Ok(format!("{place}, nothing to call"));
    }
    let began = Instant::now();
    match tokio::time::timeout(PATIENCE, answer(&*set_up)).await {
        Ok(Ok(output)) => {
            let took = began.elapsed().as_millis();
            Ok(format!("{} of {place} answered in {took} ms", output.model))
        }
        Ok(Err(error)) => Err(format!("[{}] {place}: {error}; {}", error.code(), remedy(&error.kind))),
        Err(_) => Err(format!("{place} did not answer within {} s; is it overloaded?", PATIENCE.as_secs())),
    }
}

async fn answer(provider: &dyn ModelProvider) -> Result<ModelOutput, ModelError> {
    let text = "Answer with the single word: ready";
    let mut stream = provider.stream(ModelRequest {
        model: None,
        reasoning_effort: None,
        instructions: "You answer in one word.".to_owned(),
        input: vec![InputItem::User { parts: vec![ItemPart::Text(text.to_owned())] }],
        tools: Arc::default(),
        response_format: None,
        cache_key: "doctor".to_owned(),
        max_output_tokens: OUTPUT_TOKENS,
        meta: RequestMeta {
            task_id: "doctor".into(),
            turn: 1,
            message_id: None,
            message_text: text.to_owned(),
        },
    });
    while let Some(event) = stream.next().await {
        if let ModelEvent::Done(output) = event? {
            return Ok(*output);
        }
    }
    Err(ModelError::new(ModelErrorKind::Retryable { after: None }, "the answer broke off"))
}

fn remedy(kind: &ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::Auth => "check the key, and that it is allowed to use this model",
        ModelErrorKind::Quota => "the account has nothing left; add credit or choose another provider",
        ModelErrorKind::Retryable { .. } => "check base_url and the network, or try again in a moment",
        ModelErrorKind::InvalidRequest => "check the name of the model and the api of this provider",
        ModelErrorKind::ContextOverflow => "the window of this model is too small for any task",
        ModelErrorKind::Unparseable | ModelErrorKind::Empty => {
            "the server answers something else than this protocol; check base_url and api"
        }
        ModelErrorKind::ScriptExhausted => "add a turn to the script",
    }
}
