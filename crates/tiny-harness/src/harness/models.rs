//! The model providers of the configuration behind one port: a task may name one, otherwise the default answers.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};
use harness_providers::{
    Api, EndpointConfig, FallbackModel, FallbackProvider, HttpProvider, RecordingProvider, ReplayProvider,
    ScriptFormat, ScriptedProvider,
};

use crate::{
    config::{Config, Endpoint, Provider, ProviderKind},
    failure::Failure,
};

/// Output tokens of one answer when the provider's table does not say.
const MAX_OUTPUT_TOKENS: u32 = 2_000;

/// Sets up every provider that can be used.
pub(super) fn provider(config: &Config) -> Result<Arc<dyn ModelProvider>, Failure> {
    let mut providers: BTreeMap<String, Arc<dyn ModelProvider>> = BTreeMap::new();
    for provider in &config.models.providers {
        providers.insert(provider.name.clone(), one(provider)?);
    }
    let default = providers.get(&config.models.default).cloned();
    let default =
        default.ok_or_else(|| Failure::general("no model provider is configured (model.provider)"))?;
    let default = recorded(config, with_fallback(config, default, &providers)?)?;
    Ok(Arc::new(Providers { default, providers }))
}

/// The default provider, and those that are asked when it fails.
fn with_fallback(
    config: &Config,
    first: Arc<dyn ModelProvider>,
    providers: &BTreeMap<String, Arc<dyn ModelProvider>>,
) -> Result<Arc<dyn ModelProvider>, Failure> {
    if config.models.fallback.is_empty() {
        return Ok(first);
    }
    let models = config.models.fallback.iter().filter_map(|(provider, model)| {
        let provider = Arc::clone(providers.get(provider)?);
        Some(FallbackModel { provider, model: model.clone(), reasoning_effort: None })
    });
    let tries = NonZeroU32::new(config.models.fallback_after).unwrap_or(NonZeroU32::MIN);
    Ok(Arc::new(FallbackProvider::new(first, models.collect(), tries)))
}

/// The provider, with its exchanges written down where that is asked for.
fn recorded(config: &Config, provider: Arc<dyn ModelProvider>) -> Result<Arc<dyn ModelProvider>, Failure> {
    let Some(folder) = &config.models.record else { return Ok(provider) };
    let recording = RecordingProvider::new(provider, folder, config.redactor());
    let recording = recording.map_err(|error| {
        Failure::general(format!("cannot record to {}: {error} (model.record)", folder.display()))
    })?;
    Ok(Arc::new(recording))
}

/// Output tokens of one answer of the default provider.
pub(super) fn max_output_tokens(config: &Config) -> u32 {
    match config.models.default_provider().map(|provider| &provider.kind) {
        Some(ProviderKind::Http(endpoint)) => endpoint.max_output_tokens,
        Some(ProviderKind::Scripted { .. } | ProviderKind::Replay { .. } | ProviderKind::Unconfigured)
        | None => MAX_OUTPUT_TOKENS,
    }
}

/// What serves when nothing at all is configured.
const UNCONFIGURED: &str = r#"
model = "unconfigured"

[[turns]]
text = """
This agent works, and it has no model yet. Set OPENAI_API_KEY, or start it with --config FILE and a model in that file \
(docs/configuration.md); then send your message again. `tiny-harness demo` shows an agent at work without either."""
"#;

/// Sets up one provider.
pub(crate) fn one(provider: &Provider) -> Result<Arc<dyn ModelProvider>, Failure> {
    match &provider.kind {
        ProviderKind::Unconfigured => ScriptedProvider::parse(UNCONFIGURED, ScriptFormat::Toml)
            .map(|scripted| Arc::new(scripted) as Arc<dyn ModelProvider>)
            .map_err(|error| Failure::general(error.to_string())),
        ProviderKind::Replay { path } => {
            let replay = ReplayProvider::load(path);
            Ok(Arc::new(replay.map_err(|error| {
                Failure::general(format!("cannot play back {}: {error} (model.replay.path)", path.display()))
            })?))
        }
        ProviderKind::Scripted { path } => {
            let scripted = ScriptedProvider::load(path);
            Ok(Arc::new(
                scripted.map_err(|error| {
                    Failure::config(error.to_string().lines().map(str::to_owned).collect())
                })?,
            ))
        }
        ProviderKind::Http(endpoint) => {
            let set_up = HttpProvider::new(api(endpoint), endpoint_config(&provider.name, endpoint))
                .map_err(|error| Failure::general(format!("provider {}: {error}", provider.name)))?;
            Ok(Arc::new(set_up))
        }
    }
}

/// Models that reason are asked for their reasoning in sealed form, so that it can be shown to them again.
fn api(endpoint: &Endpoint) -> Api {
    match endpoint.api {
        crate::config::Api::ChatCompletions => Api::ChatCompletions,
        crate::config::Api::Messages => Api::Messages,
        crate::config::Api::Responses => {
            Api::Responses { encrypted_reasoning: !endpoint.reasoning_efforts.is_empty() }
        }
    }
}

fn endpoint_config(name: &str, endpoint: &Endpoint) -> EndpointConfig {
    EndpointConfig {
        name: name.to_owned(),
        base_url: endpoint.base_url.clone(),
        api_key: endpoint.api_key.clone(),
        model: endpoint.model.clone(),
        models: endpoint.models.clone(),
        timeout: endpoint.timeout,
        max_output_tokens: endpoint.max_output_tokens,
        context_window_tokens: endpoint.context_window_tokens,
        stream: endpoint.stream,
    }
}

/// Chooses among providers by the name in front of a model: `provider:model`.
struct Providers {
    default: Arc<dyn ModelProvider>,
    providers: BTreeMap<String, Arc<dyn ModelProvider>>,
}

impl Providers {
    /// The provider that a task's choice names, and the model at it.
    fn named(&self, model: Option<&str>) -> Option<(&Arc<dyn ModelProvider>, String)> {
        let (name, model) = model?.split_once(':')?;
        Some((self.providers.get(name)?, model.to_owned()))
    }
}

impl ModelProvider for Providers {
    fn info(&self) -> ModelInfo {
        self.default.info()
    }

    fn info_for(&self, model: Option<&str>) -> ModelInfo {
        match self.named(model) {
            Some((provider, model)) => ModelInfo { model, ..provider.info() },
            None => self.default.info(),
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.stream_attempt(request, 1)
    }

    fn stream_attempt(&self, mut request: ModelRequest, attempt: u32) -> ModelStream {
        match self.named(request.model.as_deref()) {
            Some((provider, model)) => {
                request.model = Some(model);
                provider.stream_attempt(request, attempt)
            }
            None => self.default.stream_attempt(request, attempt),
        }
    }
}
