//! Server-sent events from untrusted bytes: any chunking, any line ending, bounded memory.
//!
//! Source: WHATWG HTML "Server-sent events", section 9.2.6. `id` and `retry` have no meaning for a single answer and
//! are ignored like unknown fields.

use std::collections::VecDeque;

/// One event with data. Events without data are dropped, as the standard says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event` field; empty when absent.
    pub(crate) name: String,
    /// The `data` fields, joined by newlines.
    pub(crate) data: String,
}

/// A line or an event was longer than the limit; the rest of the stream cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SseTooLong;

/// Decodes events incrementally.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    /// Bytes of a line, and of the data of one event.
    bytes_max: usize,
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// The last byte was a CR: a following LF belongs to it.
    after_cr: bool,
    /// No line was complete yet: a byte order mark may lead the first one.
    at_start: bool,
    event: SseEvent,
    has_data: bool,
    ready: VecDeque<SseEvent>,
}

impl SseDecoder {
    /// A decoder that refuses lines and events of more than `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            event: SseEvent::default(),
            has_data: false,
            ready: VecDeque::new(),
        }
    }

    /// Takes more bytes; complete events become available through [`Self::next_event`].
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<(), SseTooLong> {
        if self.after_cr
            && let [first, rest @ ..] = bytes
        {
            self.after_cr = false;
            if *first == b'\n' {
                bytes = rest;
            }
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.extend_line(&bytes[..end])?;
            self.finish_line()?;
            let (ending, rest) = (bytes[end], &bytes[end + 1..]);
            bytes = match (ending, rest) {
                (b'\r', [b'\n', rest @ ..]) => rest,
                (b'\r', []) => {
                    self.after_cr = true;
                    rest
                }
                _ => rest,
            };
        }
        self.extend_line(bytes)
    }

    /// The next complete event.
    pub(crate) fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// The event that the end of the stream cut off before its blank line, if any. The standard drops it; servers that
    /// forget the last blank line exist, and a caller that parses the data notices a cut.
    pub(crate) fn finish(&mut self) -> Result<Option<SseEvent>, SseTooLong> {
        if !self.line.is_empty() {
            self.finish_line()?;
        }
        self.dispatch();
        Ok(self.ready.pop_front())
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), SseTooLong> {
        if self.line.len() + bytes.len() > self.bytes_max {
            return Err(SseTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn finish_line(&mut self) -> Result<(), SseTooLong> {
        let taken = std::mem::take(&mut self.line);
        let mut line = taken.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch();
        } else {
            let colon = line.iter().position(|byte| *byte == b':');
            let (field, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
            self.take_field(field, value.strip_prefix(b" ").unwrap_or(value))?;
        }
        self.line = taken;
        self.line.clear();
        Ok(())
    }

    /// A comment has an empty field name and falls under "unknown".
    fn take_field(&mut self, field: &[u8], value: &[u8]) -> Result<(), SseTooLong> {
        match field {
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if self.event.data.len() + value.len() > self.bytes_max {
                    return Err(SseTooLong);
                }
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&String::from_utf8_lossy(value));
                self.has_data = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            self.ready.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::new(64);
        for chunk in chunks {
            decoder.push(chunk).unwrap();
        }
        let mut events: Vec<SseEvent> = std::iter::from_fn(|| decoder.next_event()).collect();
        events.extend(decoder.finish().unwrap());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn any_chunking_and_any_line_ending_give_the_same_events() {
        let text = "\u{feff}: comment\nevent: a\ndata: grüße\ndata:two\nid: 7\nretry: 1\nnonsense\n\ndata\n\n\nevent: dropped\n\ndata: 🦀\n\n";
        let expected = [event("a", "grüße\ntwo"), event("", ""), event("", "🦀")];
        for ending in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ending);
            assert_eq!(decode(&[text.as_bytes()]), expected, "whole, {ending:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(decode(&bytes), expected, "one byte at a time, {ending:?}");
            for at in 0..text.len() {
                let (head, tail) = text.as_bytes().split_at(at);
                assert_eq!(decode(&[head, tail]), expected, "split at {at}, {ending:?}");
            }
        }
    }

    #[test]
    fn a_cr_at_a_border_and_an_empty_chunk_do_not_make_a_blank_line() {
        assert_eq!(decode(&[b"data: a\r", b"", b"\ndata: b\r\n\r\n"]), [event("", "a\nb")]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(decode(&[b"data: a\n\ndata: [DONE]"]), [event("", "a"), event("", "[DONE]")]);
        assert_eq!(decode(&[b"data: a\n\ndata: b\n"]), [event("", "a"), event("", "b")]);
    }

    #[test]
    fn long_lines_and_long_events_are_refused() {
        let mut decoder = SseDecoder::new(64);
        assert_eq!(decoder.push(&[b'x'; 64]), Ok(()));
        assert_eq!(decoder.push(b"x"), Err(SseTooLong));
        let mut decoder = SseDecoder::new(64);
        let line = format!("data: {}\n", "y".repeat(40));
        assert_eq!(decoder.push(line.as_bytes()), Ok(()));
        assert_eq!(decoder.push(line.as_bytes()), Err(SseTooLong));
    }
}
