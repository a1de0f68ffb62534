//! Token counts from the shapes that providers give them. What is missing or is not a count stays unknown.

use serde_json::Value;

/// The count at a JSON pointer.
pub(crate) fn count(wire: &Value, pointer: &str) -> Option<u64> {
    wire.pointer(pointer)?.as_u64()
}

/// Keeps a newer count; a newer unknown changes nothing.
pub(crate) fn keep_newer(slot: &mut Option<u64>, value: Option<u64>) {
    *slot = value.or(*slot);
}

/// Keeps the larger count: some servers send zeros before or after the real one.
pub(crate) fn keep_larger(slot: &mut Option<u64>, value: Option<u64>) {
    *slot = (*slot).max(value);
}
