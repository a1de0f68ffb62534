//! Decoder of event streams: bytes in whatever chunks, events out. Source: WHATWG HTML, section 9.2.6.

use std::collections::VecDeque;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The last id the stream has set, up to this event.
    pub(super) id: Option<String>,
    /// The data lines, joined by newlines.
    pub(super) data: String,
}

/// An event, or a line of one, is larger than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventTooLarge;

/// Decodes one stream. Lines end with LF, CR LF or CR; a CR at the end of a chunk ends its line at once, and an LF at
/// the start of the next chunk then belongs to it.
#[derive(Debug)]
pub(super) struct SseDecoder {
    bytes_max: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<String>,
    after_cr: bool,
    first_line: bool,
    ready: VecDeque<SseEvent>,
}

impl SseDecoder {
    /// A decoder whose lines and events have at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            after_cr: false,
            first_line: true,
            ready: VecDeque::new(),
        }
    }

    /// The next event that is whole.
    pub(super) fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Takes a chunk. After an error the stream cannot be read on.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), EventTooLarge> {
        let mut rest = chunk;
        if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend_line(&rest[..end])?;
            self.end_line()?;
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
        }
        self.extend_line(rest)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > self.bytes_max {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), EventTooLarge> {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.first_line) {
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event();
            return Ok(());
        }
        let colon = text.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&text[..at], text[at + 1..].strip_prefix(b" ").unwrap_or(&text[at + 1..])),
            None => (text, &[][..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned()).filter(|id| !id.is_empty());
            }
            // Comments (an empty field name), event types and retry times mean nothing here.
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self) {
        if std::mem::take(&mut self.has_data) {
            let data = std::mem::take(&mut self.data);
            let data = String::from_utf8_lossy(&data).into_owned();
            self.ready.push_back(SseEvent { id: self.id.clone(), data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(Option<String>, String)> {
        let mut decoder = SseDecoder::new(64);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk).unwrap();
            while let Some(event) = decoder.next_event() {
                events.push((event.id, event.data));
            }
        }
        events
    }

    fn event(id: &str, data: &str) -> (Option<String>, String) {
        (Some(id.to_owned()).filter(|id| !id.is_empty()), data.to_owned())
    }

    #[test]
    fn every_split_of_every_line_end_gives_the_same_events() {
        let expected = vec![event("1", "ä\nb"), event("1", ""), event("", "c:d")];
        for end in ["\n", "\r\n", "\r"] {
            let text = [
                "\u{feff}id: 1",
                ": comment",
                "data: ä",
                "data:b",
                "",
                "data",
                "",
                "id",
                "data: c:d",
                "",
                "",
            ]
            .join(end);
            let bytes = text.as_bytes();
            for split in 0..=bytes.len() {
                assert_eq!(decode(&[&bytes[..split], &bytes[split..]]), expected, "{end:?} {split}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single), expected);
        }
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_one() {
        assert_eq!(decode(&[b"data: a\n"]), []);
        assert_eq!(decode(&[b"event: x\nretry: 5\n\n"]), []);
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let mut decoder = SseDecoder::new(8);
        assert_eq!(decoder.push(b"data: 12\n"), Ok(()));
        assert_eq!(decoder.push(b"data: 123456"), Err(EventTooLarge));
        assert_eq!(SseDecoder::new(8).push(&[b'x'; 9]), Err(EventTooLarge));
    }
}
