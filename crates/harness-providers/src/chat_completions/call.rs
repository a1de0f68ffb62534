//! One call: sends the request, reads whatever comes back within limits, and ends with an answer or an error.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use harness_ports::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use http::{HeaderMap, StatusCode, header};
use reqwest::Response;
use tokio::time::timeout;

use super::{
    Endpoint,
    answer::{Answer, Asked, PieceError},
    request,
};
use crate::{
    http_failure::{self, ErrorBody},
    sse::{SseDecoder, SseEvent},
};

/// Bytes of a whole streamed answer as it arrives; the wrapping of each token is most of it.
const STREAM_BYTES_MAX: usize = 48 * 1024 * 1024;
/// Bytes of one line and of one event of a stream.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an answer that is not streamed.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes read of the body of an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long the body of an error may keep us waiting; the status alone says enough.
const ERROR_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long the end of the stream may follow the end of the answer: usage comes last, and some servers never close.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long the end of the connection's use may follow `[DONE]`; a slower one costs a new connection.
const DRAIN_WAIT_MAX: Duration = Duration::from_millis(20);

/// The state of one call; [`Call::next`] yields its events.
pub(super) struct Call {
    endpoint: Arc<Endpoint>,
    phase: Phase,
    ready: VecDeque<Result<ModelEvent, ModelError>>,
}

enum Phase {
    Start(Box<ModelRequest>),
    Reading(Box<Reading>),
    Ended,
}

/// A streamed response on its way.
struct Reading {
    response: Response,
    decoder: SseDecoder,
    answer: Answer,
    asked: Asked,
    facts: Facts,
    received: usize,
}

/// Whether more is to come.
enum Progress {
    More,
    Done,
}

impl Call {
    pub(super) fn new(endpoint: Arc<Endpoint>, request: ModelRequest) -> Self {
        Self { endpoint, phase: Phase::Start(Box::new(request)), ready: VecDeque::new() }
    }

    /// The next event; `None` after the answer or the error.
    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let step = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Start(request) => self.start(&request).await,
                Phase::Reading(reading) => self.read_on(reading).await,
                Phase::Ended => return None,
            };
            match step {
                Ok(phase) => self.phase = phase,
                Err(error) => self.ready.push_back(Err(error)),
            }
        }
    }

    async fn start(&mut self, request: &ModelRequest) -> Result<Phase, ModelError> {
        let endpoint = Arc::clone(&self.endpoint);
        let (config, failures) = (&endpoint.config, &endpoint.failures);
        let encoded = request::encode(request, config)
            .map_err(|error| failures.error(ModelErrorKind::InvalidRequest, &error.to_string()))?;
        let asked = Asked {
            provider: config.name.clone(),
            model: encoded.model,
            max_output_tokens: encoded.max_output_tokens,
            names: encoded.names,
            body_bytes: encoded.body.len(),
        };
        let sending = endpoint
            .client
            .post(endpoint.url.clone())
            .headers(endpoint.headers.clone())
            .body(encoded.body)
            .send();
        let response = match timeout(config.timeout, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(endpoint.no_connection(&error)),
            Err(_) => return Err(failures.retryable(&format!("no answer within {:?}", config.timeout))),
        };
        if !response.status().is_success() {
            return Err(refused(&endpoint, response).await);
        }
        let facts = Facts::of(&endpoint, &response);
        if has_media_type(response.headers(), "text/event-stream") {
            let decoder = SseDecoder::new(EVENT_BYTES_MAX);
            let answer = Answer::default();
            return Ok(Phase::Reading(Box::new(Reading {
                response,
                decoder,
                answer,
                asked,
                facts,
                received: 0,
            })));
        }
        self.read_whole(response, &asked, &facts).await?;
        Ok(Phase::Ended)
    }

    async fn read_whole(
        &mut self,
        mut response: Response,
        asked: &Asked,
        facts: &Facts,
    ) -> Result<(), ModelError> {
        let mut body = Vec::new();
        loop {
            match timeout(facts.endpoint.config.timeout, response.chunk()).await {
                Ok(Ok(Some(bytes))) if body.len() + bytes.len() > BODY_BYTES_MAX => {
                    return Err(facts.unparseable(&format!("an answer of more than {BODY_BYTES_MAX} bytes")));
                }
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Ok(Ok(None)) => break,
                Ok(Err(_)) => return Err(facts.retryable("the connection broke inside the answer")),
                Err(_) => return Err(facts.retryable("the answer stalled")),
            }
        }
        let mut answer = Answer::default();
        let text = match answer.absorb_whole(&body) {
            Ok(text) => text,
            // Some servers stream without saying so.
            Err(PieceError::Unparseable) if looks_like_events(&body) => {
                return self.read_buffered(&body, asked, facts);
            }
            Err(error) => return Err(facts.piece(error, &body)),
        };
        self.push_text(text);
        self.finish(answer, asked, facts)
    }

    fn read_buffered(&mut self, body: &[u8], asked: &Asked, facts: &Facts) -> Result<(), ModelError> {
        let mut answer = Answer::default();
        let mut decoder = SseDecoder::new(EVENT_BYTES_MAX);
        decoder.push(body).map_err(|_| facts.event_too_long())?;
        while let Some(event) = decoder.next_event() {
            if let Progress::Done = self.take_event(&event, &mut answer, facts)? {
                break;
            }
        }
        if !answer.is_finished() {
            return Err(facts.truncated());
        }
        self.finish(answer, asked, facts)
    }

    /// Reads one piece of the body and everything that is complete with it.
    async fn read_on(&mut self, mut reading: Box<Reading>) -> Result<Phase, ModelError> {
        let finished = reading.answer.is_finished();
        let limit = self.endpoint.config.timeout;
        let wait = if finished { limit.min(CLOSE_WAIT_MAX) } else { limit };
        let bytes = match timeout(wait, reading.response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => {
                self.take_rest(&mut reading)?;
                return self.end(*reading);
            }
            // The answer is whole; how the connection ends no longer matters.
            Ok(Err(_)) | Err(_) if finished => return self.end(*reading),
            Ok(Err(_)) => return Err(reading.facts.retryable("the connection broke inside the answer")),
            Err(_) => {
                return Err(reading.facts.retryable(&format!("nothing came for {wait:?} inside the answer")));
            }
        };
        reading.received += bytes.len();
        if reading.received > STREAM_BYTES_MAX {
            return Err(reading
                .facts
                .unparseable(&format!("a stream of more than {STREAM_BYTES_MAX} bytes")));
        }
        reading.decoder.push(&bytes).map_err(|_| reading.facts.event_too_long())?;
        while let Some(event) = reading.decoder.next_event() {
            match self.take_event(&event, &mut reading.answer, &reading.facts)? {
                Progress::More => {}
                Progress::Done => {
                    // Reading up to the end, which comes with the last event as a rule, lets the next call use the
                    // same connection.
                    let _ended = timeout(DRAIN_WAIT_MAX, reading.response.chunk()).await.is_ok();
                    return self.end(*reading);
                }
            }
        }
        Ok(Phase::Reading(reading))
    }

    fn end(&mut self, reading: Reading) -> Result<Phase, ModelError> {
        self.finish(reading.answer, &reading.asked, &reading.facts)?;
        Ok(Phase::Ended)
    }

    /// What the end of the stream left over: an event without its blank line, or the half of one.
    fn take_rest(&mut self, reading: &mut Reading) -> Result<(), ModelError> {
        let rest = reading.decoder.finish().map_err(|_| reading.facts.event_too_long())?;
        if let Some(event) = rest {
            match self.take_event(&event, &mut reading.answer, &reading.facts) {
                Err(error) if error.kind != ModelErrorKind::Unparseable => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        if reading.answer.is_finished() { Ok(()) } else { Err(reading.facts.truncated()) }
    }

    fn take_event(
        &mut self,
        event: &SseEvent,
        answer: &mut Answer,
        facts: &Facts,
    ) -> Result<Progress, ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return if answer.is_finished() { Ok(Progress::Done) } else { Err(facts.truncated()) };
        }
        if event.name == "error" {
            return Err(facts.provider_error(&ErrorBody::parse(data.as_bytes())));
        }
        if !data.is_empty() {
            let text = answer.absorb(data.as_bytes()).map_err(|error| facts.piece(error, data.as_bytes()))?;
            self.push_text(text);
        }
        Ok(Progress::More)
    }

    fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.ready.push_back(Ok(ModelEvent::TextDelta(text)));
        }
    }

    fn finish(&mut self, answer: Answer, asked: &Asked, facts: &Facts) -> Result<(), ModelError> {
        let output = answer.finish(asked, facts.request_id.clone()).map_err(|_| {
            facts.error(ModelErrorKind::Empty, "the answer holds no text, no tool call and no refusal")
        })?;
        self.ready.push_back(Ok(ModelEvent::Done(Box::new(output))));
        Ok(())
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
async fn refused(endpoint: &Arc<Endpoint>, mut response: Response) -> ModelError {
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
    let facts = Facts::of(endpoint, &response);
    if response.status().is_redirection() {
        return facts
            .error(ModelErrorKind::InvalidRequest, "answered with a redirect, which is not followed");
    }
    facts.provider_error(&ErrorBody::parse(&body))
}

/// What errors about one response have in common.
struct Facts {
    endpoint: Arc<Endpoint>,
    status: StatusCode,
    headers: HeaderMap,
    request_id: Option<String>,
}

impl Facts {
    fn of(endpoint: &Arc<Endpoint>, response: &Response) -> Self {
        let headers = response.headers().clone();
        let request_id = http_failure::request_id(&headers);
        Self { endpoint: Arc::clone(endpoint), status: response.status(), headers, request_id }
    }

    fn error(&self, kind: ModelErrorKind, what: &str) -> ModelError {
        let what = format!("HTTP {}: {what}", self.status.as_u16());
        let error = self.endpoint.failures.error(kind, &what);
        ModelError { status: Some(self.status.as_u16()), request_id: self.request_id.clone(), ..error }
    }

    fn retryable(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::Retryable { after: None }, what)
    }

    fn truncated(&self) -> ModelError {
        self.retryable("the stream ended before the answer did")
    }

    fn unparseable(&self, what: &str) -> ModelError {
        self.error(ModelErrorKind::Unparseable, what)
    }

    fn event_too_long(&self) -> ModelError {
        self.unparseable(&format!("an event of more than {EVENT_BYTES_MAX} bytes"))
    }

    fn provider_error(&self, body: &ErrorBody) -> ModelError {
        self.error(body.classify(self.status, &self.headers), body.message())
    }

    fn piece(&self, error: PieceError, data: &[u8]) -> ModelError {
        match error {
            PieceError::Provider(body) => self.provider_error(&body),
            PieceError::Calls(error) => self.unparseable(&error.to_string()),
            PieceError::Unparseable if data.is_empty() => self.unparseable("an empty body"),
            PieceError::Unparseable => {
                self.unparseable(&format!("not a chat completion: {}", http_failure::snippet(data)))
            }
        }
    }
}

fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

fn looks_like_events(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    ["data:", "event:", ":"].iter().any(|start| body.starts_with(start.as_bytes()))
}
