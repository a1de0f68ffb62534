//! One line: which keys, in which order, and what is done to values.

use harness_model::{MASK, Redactor, Timestamp, clean_terminal, truncate_chars};
use serde_json::{Map, Value};
use tracing::Level;

use crate::fields::Fields;

/// Characters of a message and of each text field; longer ones are cut.
const TEXT_CHARS_MAX: usize = 8_192;
/// Keys that come first, in this order, when a line has them.
const LEADING: [&str; 5] = ["task_id", "correlation_id", "operation", "phase", "attempt"];
/// Keys that every line has; a field of one of these names gets an underscore.
const RESERVED: [&str; 4] = ["ts", "level", "logger", "msg"];
/// Fields whose text is a secret whatever it looks like.
const SECRET_FIELDS: [&str; 6] = ["authorization", "api_key", "password", "push_key", "secret", "token"];

/// The line, without its line break.
pub(crate) fn render(
    at: Timestamp,
    level: Level,
    logger: &str,
    mut fields: Fields,
    redactor: &Redactor,
) -> String {
    let text = |raw: &str| Value::from(safe(raw, redactor));
    let mut line = Map::new();
    line.insert("ts".to_owned(), Value::from(at.to_rfc3339()));
    line.insert("level".to_owned(), Value::from(level_name(level)));
    line.insert("logger".to_owned(), Value::from(logger));
    let message = fields.take("message").unwrap_or_default();
    line.insert("msg".to_owned(), text(message.as_str().unwrap_or_default()));
    let leading = LEADING.into_iter().filter_map(|key| Some((key, fields.take(key)?))).collect::<Vec<_>>();
    for (key, value) in leading.into_iter().chain(fields.into_entries()) {
        let value = match value {
            Value::String(_) if SECRET_FIELDS.contains(&key) => Value::from(MASK),
            Value::String(raw) => text(&raw),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value,
        };
        let key = if RESERVED.contains(&key) { format!("{key}_") } else { key.to_owned() };
        line.insert(key, value);
    }
    Value::Object(line).to_string()
}

/// Masked before it is cut: half a secret would no longer be recognised.
fn safe(raw: &str, redactor: &Redactor) -> String {
    truncate_chars(&clean_terminal(&redactor.text(raw)), TEXT_CHARS_MAX)
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}
