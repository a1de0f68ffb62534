//! Any server that speaks OpenAI's Chat Completions.

mod answer;
mod fragments;
mod request;
mod wire;

use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};

use crate::{
    Api, EndpointConfig, HttpProvider, ProviderSetupError,
    conversation::EncodeError,
    wire::{Asked, Reader, Wire},
};

/// One Chat Completions endpoint.
pub type ChatCompletionsConfig = EndpointConfig;

/// Calls models through Chat Completions: an [`HttpProvider`] with the wire chosen.
#[derive(Clone, Debug)]
pub struct ChatCompletionsProvider {
    http: HttpProvider,
}

impl ChatCompletionsProvider {
    /// Sets up a provider; nothing is sent yet. An https URL needs an installed `rustls` crypto provider.
    pub fn new(config: ChatCompletionsConfig) -> Result<Self, ProviderSetupError> {
        HttpProvider::new(Api::ChatCompletions, config).map(|http| Self { http })
    }
}

impl ModelProvider for ChatCompletionsProvider {
    fn info(&self) -> ModelInfo {
        self.http.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.http.stream(request)
    }
}

/// The wire.
#[derive(Debug)]
pub(crate) struct ChatCompletions;

impl Wire for ChatCompletions {
    fn body(
        &self,
        request: &ModelRequest,
        asked: &Asked,
        config: &EndpointConfig,
    ) -> Result<Vec<u8>, EncodeError> {
        Ok(request::body(request, asked, config))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<answer::Answer>::default()
    }
}
