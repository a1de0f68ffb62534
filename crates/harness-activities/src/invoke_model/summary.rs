//! One line about a call, for people.

use harness_model::{Redactor, clean_field, limits};
use serde_json::{Map, Value};

/// Characters of one value that are looked at; the line is much shorter.
const VALUE_CHARS_MAX: usize = 200;
/// Arguments that are looked at.
const ARGUMENTS_MAX: usize = 8;

/// The arguments on one cleaned, redacted, capped line: `order_id: 48213, notify: true`.
pub(super) fn of(arguments: &Map<String, Value>, redactor: &Redactor) -> String {
    let shown = |(key, value): (&String, &Value)| {
        let key: String = key.chars().take(VALUE_CHARS_MAX).collect();
        format!("{key}: {}", brief(value))
    };
    let line = arguments.iter().take(ARGUMENTS_MAX).map(shown).collect::<Vec<_>>().join(", ");
    clean_field(&redactor.text(&line), Some(limits::CALL_SUMMARY_CHARS_MAX)).text
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().take(VALUE_CHARS_MAX).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(fields) => format!("{} fields", fields.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(value: &Value) -> String {
        of(value.as_object().unwrap(), &Redactor::default())
    }

    #[test]
    fn scalars_are_shown_and_the_rest_is_counted() {
        assert_eq!(
            line(&json!({"order_id": "48213", "n": 2, "ok": true})),
            "order_id: 48213, n: 2, ok: true"
        );
        assert_eq!(line(&json!({"ids": [1, 2], "box": {"a": 1}})), "ids: 2 items, box: 1 fields");
        assert_eq!(line(&json!({})), "");
    }

    #[test]
    fn it_is_one_short_clean_line_without_secrets() {
        assert_eq!(line(&json!({"a": "x\n\u{1b}[2J<b>"})), "a: x [2J‹b›");
        assert_eq!(line(&json!({"password": "correct-horse"})), "password: [REDACTED]");
        let long = line(&json!({"text": "ü".repeat(10_000)}));
        assert_eq!(long.chars().count(), limits::CALL_SUMMARY_CHARS_MAX);
    }
}
