//! JSON from a provider: checked before it becomes values, which take many times the room of their text.

use harness_model::{depth_at_most, limits::JSON_DEPTH_MAX};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Values in one JSON text, and values that are kept of one answer. A value takes up to about 100 bytes of memory.
pub(crate) const NODES_MAX: usize = 200_000;

/// Parses a JSON text whose depth and number of values are bounded; `None` when it is anything else.
pub(crate) fn parse<T: DeserializeOwned>(data: &[u8]) -> Option<T> {
    if !depth_at_most(data, JSON_DEPTH_MAX) || !nodes_at_most(data, NODES_MAX) {
        return None;
    }
    serde_json::from_slice(data).ok()
}

/// Whether a JSON text holds at most about `max` values: each but the first of its kind follows a comma or a bracket.
fn nodes_at_most(data: &[u8], max: usize) -> bool {
    let (mut nodes, mut in_string, mut escaped) = (1_usize, false, false);
    for byte in data {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => nodes += 1,
            _ => {}
        }
        if nodes > max {
            return false;
        }
    }
    true
}

/// How many values the fields of an object consist of.
pub(crate) fn nodes_of(map: &Map<String, Value>) -> usize {
    map.values().map(nodes_of_value).sum()
}

/// How many values a value consists of, itself included.
pub(crate) fn nodes_of_value(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes_of_value).sum::<usize>(),
        Value::Object(fields) => 1 + nodes_of(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_counted_outside_of_strings() {
        for (text, nodes) in [("1", 1), ("[]", 2), ("[1,2,3]", 4), (r#"{"a":{"b":",,[["},"c":"\"[["}"#, 4)] {
            assert!(nodes_at_most(text.as_bytes(), nodes), "{text}");
            assert!(!nodes_at_most(text.as_bytes(), nodes - 1), "{text}");
        }
    }

    #[test]
    fn what_is_too_deep_or_too_much_is_not_parsed() {
        assert_eq!(parse::<Value>(b"[1]"), Some(serde_json::json!([1])));
        assert_eq!(parse::<Value>("[".repeat(100).as_bytes()), None);
        assert_eq!(parse::<Value>(format!("[{}1]", "1,".repeat(NODES_MAX)).as_bytes()), None);
    }
}
