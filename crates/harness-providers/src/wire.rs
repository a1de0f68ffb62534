//! What differs from wire to wire: how a request is written, and how an answer grows from what arrives.

use std::fmt;

use harness_model::{Finish, ModelOutput, Usage};
use harness_ports::{InputItem, ModelRequest};

use crate::{
    Api, EndpointConfig,
    calls::CallsError,
    chat_completions::ChatCompletions,
    conversation::{self, EncodeError},
    http_failure::ErrorBody,
    messages::Messages,
    responses::Responses,
    tool_names::ToolNames,
};

/// Stands for the words of a refusal when the provider gives none.
pub(crate) const FILTERED: &str = "The provider's content filter stopped the answer.";

/// One protocol.
pub(crate) trait Wire: fmt::Debug + Send + Sync {
    /// Writes a request body. Equal requests give equal bytes, and what changes from turn to turn comes last: a longer
    /// conversation begins with the same bytes.
    fn body(
        &self,
        request: &ModelRequest,
        asked: &Asked,
        config: &EndpointConfig,
    ) -> Result<Vec<u8>, EncodeError>;

    /// Something that reads one answer.
    fn reader(&self) -> Box<dyn Reader>;
}

/// The implementation of a wire.
pub(crate) fn wire_of(api: Api) -> &'static dyn Wire {
    match api {
        Api::ChatCompletions => &ChatCompletions,
        Api::Responses { encrypted_reasoning: true } => &Responses { encrypted_reasoning: true },
        Api::Responses { encrypted_reasoning: false } => &Responses { encrypted_reasoning: false },
        Api::Messages => &Messages,
    }
}

impl From<CallsError> for PieceError {
    fn from(error: CallsError) -> Self {
        Self::Calls(error)
    }
}

/// Grows one answer. Nothing here waits or allocates by a number from outside.
pub(crate) trait Reader: fmt::Debug + Send {
    /// Takes the data of one streamed event; `name` is its `event` field, which may be missing.
    fn absorb(&mut self, name: &str, data: &[u8]) -> Result<Piece, PieceError>;

    /// Takes a whole answer that was not streamed and returns the text in it.
    fn absorb_whole(&mut self, data: &[u8]) -> Result<String, PieceError>;

    /// Whether the provider said why it stopped; without that an answer is cut off.
    fn is_finished(&self) -> bool;

    /// The answer in the harness's terms.
    fn finish(self: Box<Self>, asked: &Asked) -> Answered;
}

/// What one event brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// More of the text.
    pub(crate) text: String,
    /// Nothing follows.
    pub(crate) is_last: bool,
}

/// Why a piece is not part of an answer.
#[derive(Debug)]
pub(crate) enum PieceError {
    /// The provider reports an error inside a successful response.
    Provider(ErrorBody),
    /// Not JSON of the expected shape.
    Unparseable,
    /// More calls, or larger ones, than an answer may hold.
    Calls(CallsError),
    /// More of the provider's own items than an answer may hold.
    TooMuch,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The answer. Its request id is the provider's id of the answer, if it has one.
    pub(crate) output: ModelOutput,
    /// The end of its text, which no piece has brought.
    pub(crate) rest: String,
    /// The provider wants to be asked again with this answer in the conversation; it goes on from there.
    pub(crate) is_paused: bool,
}

/// What the request said that its answer has to be read with.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) max_output_tokens: u32,
    pub(crate) names: ToolNames,
    /// The request goes on with an answer that the provider paused.
    pub(crate) is_continued: bool,
}

impl Asked {
    /// Checks a request and takes from it what every wire needs.
    pub(crate) fn of(request: &ModelRequest, config: &EndpointConfig) -> Result<Self, EncodeError> {
        conversation::check_results(&request.input)?;
        let model = request.model.as_ref().unwrap_or(&config.model);
        if *model != config.model && !config.models.contains(model) {
            return Err(EncodeError::UnknownModel(model.clone()));
        }
        Ok(Self {
            provider: config.name.clone(),
            model: model.clone(),
            max_output_tokens: request.max_output_tokens.min(config.max_output_tokens),
            names: names_of(request),
            is_continued: false,
        })
    }

    /// Servers exist that call an answer complete which their own cap cut off.
    pub(crate) fn is_at_cap(&self, usage: &Usage) -> bool {
        usage.output.is_some_and(|tokens| tokens >= u64::from(self.max_output_tokens))
    }

    /// An answer without content.
    pub(crate) fn output(&self, finish: Finish, usage: Usage) -> ModelOutput {
        ModelOutput {
            text: String::new(),
            calls: Vec::new(),
            refusal: None,
            finish,
            usage,
            model: self.model.clone(),
            provider: self.provider.clone(),
            request_id: None,
            raw_items: Vec::new(),
        }
    }
}

/// Names of the offered tools first, so that they do not depend on the conversation.
fn names_of(request: &ModelRequest) -> ToolNames {
    let offered = request.tools.iter().map(|tool| tool.name.as_str());
    let called = request.input.iter().flat_map(|item| match item {
        InputItem::Model(output) => output.calls.as_slice(),
        InputItem::User { .. } | InputItem::ToolResult { .. } => &[],
    });
    ToolNames::new(offered.chain(called.map(|call| call.name.as_str())))
}

/// Whether an answer says nothing at all. One that was cut off before its first word is something else: more room
/// helps there.
pub(crate) fn is_empty(output: &ModelOutput) -> bool {
    let says_nothing = output.text.trim().is_empty() && output.calls.is_empty();
    match output.finish {
        Finish::Refusal | Finish::Length => false,
        // It asked for a tool and named none: taking its text for an answer would end the turn early.
        Finish::ToolCalls => output.calls.is_empty(),
        Finish::Stop | Finish::Other(_) => says_nothing,
    }
}
