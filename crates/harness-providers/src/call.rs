//! One call: sends the request, reads whatever comes back within limits, and ends with an answer or an error.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use harness_model::ModelOutput;
use harness_ports::{InputItem, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use reqwest::Response;
use tokio::time::timeout;

use crate::{
    decoder::{Decoder, Progress, joined},
    endpoint::Endpoint,
    facts::Facts,
    wire::{Answered, Asked, is_empty},
};

/// Bytes read of the body of an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long the body of an error may keep us waiting; the status alone says enough.
const ERROR_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long the end of the stream may follow the end of the answer: usage comes last, and some servers never close.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long the end of the connection's use may follow the last event; a slower one costs a new connection.
const DRAIN_WAIT_MAX: Duration = Duration::from_millis(20);
/// How often a provider may pause one answer and be asked to go on.
const PAUSES_MAX: u32 = 8;

/// The state of one call; [`Call::next`] yields its events.
pub(crate) struct Call {
    endpoint: Arc<Endpoint>,
    request: Box<ModelRequest>,
    phase: Phase,
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    /// What the answer consisted of when the provider paused it.
    earlier: Option<ModelOutput>,
    pauses: u32,
}

enum Phase {
    Start,
    Reading(Box<Reading>),
    Ended,
}

/// A response on its way.
struct Reading {
    response: Response,
    decoder: Decoder,
    asked: Asked,
    facts: Facts,
    body_bytes: usize,
}

impl Call {
    pub(crate) fn new(endpoint: Arc<Endpoint>, request: ModelRequest) -> Self {
        Self {
            endpoint,
            request: Box::new(request),
            phase: Phase::Start,
            ready: VecDeque::new(),
            earlier: None,
            pauses: 0,
        }
    }

    /// The next event; `None` after the answer or the error.
    pub(crate) async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let step = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Start => self.start().await,
                Phase::Reading(reading) => self.read_on(reading).await,
                Phase::Ended => return None,
            };
            match step {
                Ok(phase) => self.phase = phase,
                Err(error) => self.ready.push_back(Err(error)),
            }
        }
    }

    async fn start(&mut self) -> Result<Phase, ModelError> {
        let endpoint = &self.endpoint;
        let (config, failures) = (&endpoint.config, &endpoint.failures);
        let asked = Asked::of(&self.request, config);
        let encoded = asked.and_then(|mut asked| {
            asked.is_continued = self.earlier.is_some();
            let body = endpoint.wire.body(&self.request, &asked, config)?;
            Ok((asked, body))
        });
        let (asked, body) =
            encoded.map_err(|error| failures.error(ModelErrorKind::InvalidRequest, &error.to_string()))?;
        let body_bytes = body.len();
        let response = match timeout(config.timeout, endpoint.send(body)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(endpoint.no_connection(&error)),
            Err(_) => return Err(failures.retryable(&format!("no answer within {:?}", config.timeout))),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let decoder = Decoder::new(endpoint.wire, &headers);
        let facts = Facts::new(failures.clone(), endpoint.api, status, headers);
        if !status.is_success() {
            return Err(refused(response, &facts).await);
        }
        Ok(Phase::Reading(Box::new(Reading { response, decoder, asked, facts, body_bytes })))
    }

    /// Reads one piece of the body and everything that is complete with it.
    async fn read_on(&mut self, mut reading: Box<Reading>) -> Result<Phase, ModelError> {
        let finished = reading.decoder.is_finished();
        let limit = self.endpoint.config.timeout;
        let wait = if finished { limit.min(CLOSE_WAIT_MAX) } else { limit };
        let bytes = match timeout(wait, reading.response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => {
                reading.decoder.end(&reading.facts)?;
                return self.end(*reading);
            }
            // The answer is whole; how the connection ends no longer matters.
            Ok(Err(_)) | Err(_) if finished => return self.end(*reading),
            Ok(Err(_)) => return Err(reading.facts.retryable("the connection broke inside the answer")),
            Err(_) => {
                return Err(reading.facts.retryable(&format!("nothing came for {wait:?} inside the answer")));
            }
        };
        let progress = reading.decoder.push(&bytes, &reading.facts)?;
        self.take_texts(&mut reading.decoder);
        match progress {
            Progress::More => Ok(Phase::Reading(reading)),
            Progress::Done => {
                // Reading up to the end, which comes with the last event as a rule, lets the next call use the same
                // connection.
                let _ended = timeout(DRAIN_WAIT_MAX, reading.response.chunk()).await.is_ok();
                self.end(*reading)
            }
        }
    }

    /// Takes a complete answer; one that the provider paused is continued.
    fn end(&mut self, reading: Reading) -> Result<Phase, ModelError> {
        let Reading { mut decoder, asked, facts, body_bytes, .. } = reading;
        self.take_texts(&mut decoder);
        let Answered { mut output, rest, is_paused } = decoder.finish(&asked);
        warn_when_the_prompt_was_cut(&output, body_bytes);
        output.request_id = facts.request_id.clone().or(output.request_id);
        if is_paused && self.pauses < PAUSES_MAX {
            self.pauses += 1;
            self.push_text(rest);
            self.request.input.push(InputItem::Model(output.clone()));
            self.earlier = Some(self.joined_to_earlier(output));
            return Ok(Phase::Start);
        }
        let output = self.joined_to_earlier(output);
        if is_empty(&output) {
            return Err(facts.empty());
        }
        self.push_text(rest);
        self.ready.push_back(Ok(ModelEvent::Done(Box::new(output))));
        Ok(Phase::Ended)
    }

    fn joined_to_earlier(&mut self, output: ModelOutput) -> ModelOutput {
        match self.earlier.take() {
            Some(earlier) => joined(earlier, output),
            None => output,
        }
    }

    fn take_texts(&mut self, decoder: &mut Decoder) {
        while let Some(text) = decoder.next_text() {
            self.push_text(text);
        }
    }

    fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.ready.push_back(Ok(ModelEvent::TextDelta(text)));
        }
    }
}

impl Endpoint {
    /// The request got no response. The client's own text may hold the URL; the innermost cause does not.
    fn no_connection(&self, error: &reqwest::Error) -> ModelError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let what = if error.is_connect() { "cannot connect to" } else { "no response from" };
        self.failures.retryable(&format!("{what} {}: {cause}", self.origin))
    }
}

/// What an answer other than success means.
async fn refused(mut response: Response, facts: &Facts) -> ModelError {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() >= ERROR_BYTES_MAX {
                break;
            }
        }
    };
    // A body that does not end is as good as what came of it.
    let _complete = timeout(ERROR_WAIT_MAX, reading).await.is_ok();
    facts.refused(&body)
}

/// A server with a small context window may drop the front of the prompt and say nothing.
fn warn_when_the_prompt_was_cut(output: &ModelOutput, body_bytes: usize) {
    /// No tokenizer packs more bytes of ordinary JSON into one token, by a wide margin.
    const BYTES_PER_TOKEN_MAX: usize = 16;
    /// Below this a difference says nothing.
    const BODY_BYTES_MIN: usize = 16_384;
    let Some(input_tokens) = output.usage.input else { return };
    let least = (body_bytes / BYTES_PER_TOKEN_MAX) as u64;
    if body_bytes >= BODY_BYTES_MIN && input_tokens < least {
        tracing::warn!(
            provider = output.provider,
            input_tokens,
            request_bytes = body_bytes,
            "the provider read far less than it was sent; its context window may be smaller than configured"
        );
    }
}
