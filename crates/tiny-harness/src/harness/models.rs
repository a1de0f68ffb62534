//! The model providers of the configuration behind one port: a task may name one, otherwise the default answers.

use std::{collections::BTreeMap, sync::Arc};

use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};
use harness_providers::{Api, EndpointConfig, HttpProvider, ScriptFormat, ScriptedProvider};

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
    Ok(Arc::new(Providers { default, providers }))
}

/// Output tokens of one answer of the default provider.
pub(super) fn max_output_tokens(config: &Config) -> u32 {
    match config.models.default_provider().map(|provider| &provider.kind) {
        Some(ProviderKind::Http(endpoint)) => endpoint.max_output_tokens,
        Some(ProviderKind::Scripted { .. } | ProviderKind::Unconfigured) | None => MAX_OUTPUT_TOKENS,
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

impl ModelProvider for Providers {
    fn info(&self) -> ModelInfo {
        self.default.info()
    }

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let named = request.model.as_deref().and_then(|model| {
            let (name, model) = model.split_once(':')?;
            Some((self.providers.get(name)?, model.to_owned()))
        });
        match named {
            Some((provider, model)) => {
                request.model = Some(model);
                provider.stream(request)
            }
            None => self.default.stream(request),
        }
    }
}
