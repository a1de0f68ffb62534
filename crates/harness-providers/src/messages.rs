//! Anthropic Messages.

mod answer;
mod blocks;
mod cache;
mod request;
mod wire;

use harness_ports::ModelRequest;

use crate::{
    EndpointConfig,
    conversation::EncodeError,
    wire::{Asked, Reader, Wire},
};

/// Kind of the raw items of an answer: its content blocks, tool use without its input.
const RAW_KIND: &str = "messages.v1";
/// Why the provider stopped when it wants to be asked to go on.
const PAUSE_TURN: &str = "pause_turn";

/// The wire.
#[derive(Debug)]
pub(crate) struct Messages;

impl Wire for Messages {
    fn body(
        &self,
        request: &ModelRequest,
        asked: &Asked,
        config: &EndpointConfig,
    ) -> Result<Vec<u8>, EncodeError> {
        request::body(request, asked, config)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<answer::Answer>::default()
    }
}
