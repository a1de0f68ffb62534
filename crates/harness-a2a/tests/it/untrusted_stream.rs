//! Any bytes through the decoder of event streams: what it says does not depend on how they were cut, and it keeps no
//! more than it may. Shared with the fuzz target.

use crate::sse_decoder::{SseDecoder, SseEvent};

/// Bytes of the largest event.
const BYTES_MAX: usize = 256;

/// Panics when the decoder says different things about the same bytes.
pub(crate) fn check(bytes: &[u8]) {
    let whole = decode(std::iter::once(bytes));
    for event in &whole.0 {
        // Every byte that is not text becomes a replacement character of three bytes.
        assert!(event.data.len() <= 3 * BYTES_MAX, "an event is bounded");
    }
    // The first byte says where to cut; it is part of the stream as well.
    let size = 1 + usize::from(bytes.first().copied().unwrap_or_default() % 16);
    for chunks in [decode(bytes.chunks(1)), decode(bytes.chunks(size))] {
        assert_eq!(chunks.1, whole.1, "whether it is too large does not depend on the chunks");
        assert_eq!(chunks.0, whole.0, "what it says does not depend on the chunks");
    }
}

/// The events up to the end or to what was too large, and whether something was.
fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<SseEvent>, bool) {
    let mut decoder = SseDecoder::new(BYTES_MAX);
    let mut events = Vec::new();
    for chunk in chunks {
        let too_large = decoder.push(chunk).is_err();
        events.extend(std::iter::from_fn(|| decoder.next_event()));
        if too_large {
            return (events, true);
        }
    }
    (events, false)
}
