//! Where the provider is told to cache: it caches what stands before a mark and looks for it there the next time.

use serde_json::{Value, json};

use super::request::Message;

/// Marks of the conversation. One more is on the instructions; the provider allows four.
const MARKS: usize = 2;

/// What a mark is.
pub(super) fn mark() -> Value {
    json!({"type": "ephemeral"})
}

/// Marks the ends of the newest user messages.
///
/// The newest is what this request adds. The one before it is where the last request ended and was cached: the provider
/// looks back only some twenty blocks from a mark, and one answer with its results may have more.
pub(super) fn mark_history(messages: &mut [Message]) {
    let ends = messages.iter_mut().rev().filter_map(|message| match message {
        Message::User(blocks) => blocks.last_mut(),
        Message::Assistant(_) => None,
    });
    for block in ends.take(MARKS) {
        if let Some(block) = block.as_object_mut() {
            block.insert("cache_control".to_owned(), mark());
        }
    }
}
