//! OpenAI Responses, without anything kept at the provider.

mod answer;
mod items;
mod request;
mod wire;

use harness_ports::ModelRequest;

use crate::{
    EndpointConfig,
    conversation::EncodeError,
    wire::{Asked, Reader, Wire},
};

/// Kind of the raw items of an answer.
const RAW_KIND: &str = "responses.v1";

/// The wire.
#[derive(Debug)]
pub(crate) struct Responses {
    /// Ask for reasoning that can be sent back.
    pub(crate) encrypted_reasoning: bool,
}

impl Wire for Responses {
    fn body(
        &self,
        request: &ModelRequest,
        asked: &Asked,
        config: &EndpointConfig,
    ) -> Result<Vec<u8>, EncodeError> {
        Ok(request::body(request, asked, config, self))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<answer::Answer>::default()
    }
}
