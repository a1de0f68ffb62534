//! A response that was captured from the network, read without one.

use std::fmt;

use harness_model::ModelOutput;
use harness_ports::ModelError;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::{
    Api,
    decoder::{Decoder, Progress},
    facts::Facts,
    http_failure::Failures,
    tool_names::ToolNames,
    wire::{Answered, Asked, is_empty, wire_of},
};

/// Bytes that are read at a time, as if they came from a network.
const PIECE_BYTES: usize = 1_021;

/// One HTTP response of a model server.
#[derive(Clone)]
pub struct CapturedResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl fmt::Debug for CapturedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CapturedResponse({}, {} bytes)", self.status, self.body.len())
    }
}

impl CapturedResponse {
    /// A successful response with this media type.
    pub fn ok(media_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let media_type = HeaderValue::from_static(media_type);
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, media_type)]);
        Self { status: StatusCode::OK, headers, body: body.into() }
    }

    /// Reads a capture: status line, headers, an empty line, and the body without transfer coding, as `curl -i` writes
    /// it. `None` when it is not one.
    pub fn parse(capture: &[u8]) -> Option<Self> {
        let ends = [&b"\r\n\r\n"[..], b"\n\n"].map(|end| {
            let at = capture.windows(end.len()).position(|bytes| bytes == end)?;
            Some((at, at + end.len()))
        });
        let (head_end, body_start) = ends.into_iter().flatten().min()?;
        let head = std::str::from_utf8(&capture[..head_end]).ok()?;
        let mut lines = head.lines();
        let status = lines.next()?.strip_prefix("HTTP/")?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(':')?;
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).ok()?,
                HeaderValue::from_str(value.trim()).ok()?,
            );
        }
        Some(Self { status, headers, body: capture[body_start..].to_vec() })
    }

    /// What a provider makes of it. Tool names stay in the wire's form.
    pub fn read(&self, api: Api) -> Result<ModelOutput, ModelError> {
        let facts = Facts::new(Failures::new("captured", None), api, self.status, self.headers.clone());
        if !self.status.is_success() {
            return Err(facts.refused(&self.body));
        }
        let asked = Asked {
            provider: "captured".to_owned(),
            model: "unknown".to_owned(),
            max_output_tokens: u32::MAX,
            names: ToolNames::default(),
            is_continued: false,
        };
        let mut decoder = Decoder::new(wire_of(api), &self.headers);
        let mut text = String::new();
        let mut progress = Progress::More;
        for piece in self.body.chunks(PIECE_BYTES) {
            progress = decoder.push(piece, &facts)?;
            while let Some(piece) = decoder.next_text() {
                text.push_str(&piece);
            }
            if progress == Progress::Done {
                break;
            }
        }
        if progress == Progress::More {
            decoder.end(&facts)?;
        }
        while let Some(piece) = decoder.next_text() {
            text.push_str(&piece);
        }
        let Answered { mut output, rest, .. } = decoder.finish(&asked);
        debug_assert_eq!(text + &rest, output.text, "the text is the concatenation of its pieces");
        output.request_id = facts.request_id.clone().or(output.request_id);
        if is_empty(&output) { Err(facts.empty()) } else { Ok(output) }
    }
}
