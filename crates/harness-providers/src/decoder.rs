//! From the bytes of one response to one answer: any wire, streamed or whole, within limits, without waiting.

use std::collections::VecDeque;

use harness_model::ModelOutput;
use harness_ports::{ModelError, ModelErrorKind};
use http::{HeaderMap, header};

use crate::{
    facts::Facts,
    http_failure::ErrorBody,
    sse::{SseDecoder, SseEvent},
    wire::{Answered, Asked, Piece, PieceError, Reader, Wire},
};

/// Bytes of a whole streamed answer as it arrives; the wrapping of each token is most of it.
const STREAM_BYTES_MAX: usize = 48 * 1024 * 1024;
/// Bytes of one line and of one event of a stream.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an answer that is not streamed.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads one response. After an error it is of no use any more.
#[derive(Debug)]
pub(crate) struct Decoder {
    wire: &'static dyn Wire,
    reader: Box<dyn Reader>,
    form: Form,
    received: usize,
    texts: VecDeque<String>,
}

/// How an answer arrives.
#[derive(Debug)]
enum Form {
    Events(SseDecoder),
    Whole(Vec<u8>),
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

impl Decoder {
    /// A decoder for a successful response with these headers.
    pub(crate) fn new(wire: &'static dyn Wire, headers: &HeaderMap) -> Self {
        let form = if has_media_type(headers, "text/event-stream") {
            Form::Events(SseDecoder::new(EVENT_BYTES_MAX))
        } else {
            Form::Whole(Vec::new())
        };
        Self { wire, reader: wire.reader(), form, received: 0, texts: VecDeque::new() }
    }

    /// Whether what came is a complete answer already, whatever happens to the rest.
    pub(crate) fn is_finished(&self) -> bool {
        self.reader.is_finished()
    }

    /// The next piece of text.
    pub(crate) fn next_text(&mut self) -> Option<String> {
        self.texts.pop_front()
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], facts: &Facts) -> Result<Progress, ModelError> {
        self.received += bytes.len();
        match &mut self.form {
            Form::Whole(_) if self.received > BODY_BYTES_MAX => {
                Err(facts.unparseable(&format!("an answer of more than {BODY_BYTES_MAX} bytes")))
            }
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(Progress::More)
            }
            Form::Events(_) if self.received > STREAM_BYTES_MAX => {
                Err(facts.unparseable(&format!("a stream of more than {STREAM_BYTES_MAX} bytes")))
            }
            Form::Events(events) => {
                events.push(bytes).map_err(|_| event_too_long(facts))?;
                self.take_events(facts)
            }
        }
    }

    /// Takes the end of the response; it succeeds only when the answer is complete.
    pub(crate) fn end(&mut self, facts: &Facts) -> Result<(), ModelError> {
        match &mut self.form {
            Form::Whole(body) => {
                let body = std::mem::take(body);
                self.take_whole(&body, facts)
            }
            Form::Events(events) => {
                let rest = events.finish().map_err(|_| event_too_long(facts))?;
                self.take_rest(rest, facts)
            }
        }
    }

    /// The answer.
    pub(crate) fn finish(self, asked: &Asked) -> Answered {
        self.reader.finish(asked)
    }

    fn take_events(&mut self, facts: &Facts) -> Result<Progress, ModelError> {
        loop {
            let Form::Events(events) = &mut self.form else { return Ok(Progress::More) };
            let Some(event) = events.next_event() else { return Ok(Progress::More) };
            if self.take_event(&event, facts)? == Progress::Done {
                return Ok(Progress::Done);
            }
        }
    }

    fn take_event(&mut self, event: &SseEvent, facts: &Facts) -> Result<Progress, ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return if self.is_finished() { Ok(Progress::Done) } else { Err(facts.truncated()) };
        }
        if event.name == "error" {
            return Err(facts.provider_error(&ErrorBody::parse(data.as_bytes())));
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let piece = self.reader.absorb(&event.name, data.as_bytes());
        let Piece { text, is_last } = piece.map_err(|error| facts.piece(error, data.as_bytes()))?;
        self.push_text(text);
        Ok(if is_last { Progress::Done } else { Progress::More })
    }

    /// What the end of a stream left over: an event without its blank line, or the half of one.
    fn take_rest(&mut self, rest: Option<SseEvent>, facts: &Facts) -> Result<(), ModelError> {
        if let Some(event) = rest {
            match self.take_event(&event, facts) {
                Err(error) if error.kind != ModelErrorKind::Unparseable => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        if self.is_finished() { Ok(()) } else { Err(facts.truncated()) }
    }

    fn take_whole(&mut self, body: &[u8], facts: &Facts) -> Result<(), ModelError> {
        match self.reader.absorb_whole(body) {
            Ok(text) => {
                self.push_text(text);
                Ok(())
            }
            // Some servers stream without saying so.
            Err(PieceError::Unparseable) if looks_like_events(body) => self.take_buffered(body, facts),
            Err(error) => Err(facts.piece(error, body)),
        }
    }

    fn take_buffered(&mut self, body: &[u8], facts: &Facts) -> Result<(), ModelError> {
        self.reader = self.wire.reader();
        let mut events = SseDecoder::new(EVENT_BYTES_MAX);
        events.push(body).map_err(|_| event_too_long(facts))?;
        self.form = Form::Events(events);
        match self.take_events(facts)? {
            Progress::Done => Ok(()),
            Progress::More => self.end(facts),
        }
    }

    fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.texts.push_back(text);
        }
    }
}

/// Adds an answer to the one it continues.
pub(crate) fn joined(earlier: ModelOutput, later: ModelOutput) -> ModelOutput {
    let sum = |a: Option<u64>, b: Option<u64>| {
        if a.is_none() && b.is_none() { None } else { Some(a.unwrap_or(0) + b.unwrap_or(0)) }
    };
    let mut output = later;
    output.text.insert_str(0, &earlier.text);
    output.raw_items.splice(0..0, earlier.raw_items);
    let usage = &mut output.usage;
    usage.input = sum(earlier.usage.input, usage.input);
    usage.cached = sum(earlier.usage.cached, usage.cached);
    usage.cache_written = sum(earlier.usage.cache_written, usage.cache_written);
    usage.output = sum(earlier.usage.output, usage.output);
    output
}

fn event_too_long(facts: &Facts) -> ModelError {
    facts.unparseable(&format!("an event of more than {EVENT_BYTES_MAX} bytes"))
}

fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

fn looks_like_events(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    ["data:", "event:", ":"].iter().any(|start| body.starts_with(start.as_bytes()))
}
