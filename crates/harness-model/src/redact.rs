//! Secrets: a type that never shows itself, and a redactor for every border.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// What stands where a secret stood.
pub const MASK: &str = "[REDACTED]";
/// Configured values shorter than this are not masked: they would mask half of every text.
const SECRET_CHARS_MIN: usize = 4;
/// Least length of what follows a known prefix or keyword.
const TAIL_CHARS_MIN: usize = 8;

/// A value that is masked in `Debug`, `Display` and `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes custody of a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// Masks configured secrets and the usual shapes of secrets in text. Pure and cheap to clone by reference.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another is masked whole.
    values: Vec<Secret>,
}

impl Redactor {
    /// A redactor that knows these values besides the usual shapes.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut values: Vec<Secret> =
            secrets.into_iter().filter(|s| s.0.chars().count() >= SECRET_CHARS_MIN).collect();
        values.sort_by_key(|s| std::cmp::Reverse(s.0.len()));
        Self { values }
    }

    /// The text with every secret masked.
    pub fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.values {
            if out.contains(&secret.0) {
                out = out.replace(&secret.0, MASK);
            }
        }
        mask_shapes(&out)
    }

    /// How much of a growing text is settled: the redaction of those first bytes no longer depends on what follows.
    /// Unit: bytes, on a character border. What comes after may be the beginning of a secret.
    pub fn settled(&self, text: &str) -> usize {
        let mut end = text.len();
        loop {
            // A cut may fall into a shape that is finished only with what was cut off, so the rest is looked at again.
            let rest = &text[..end];
            let open_value = self.values.iter().filter_map(|secret| open_value(rest, &secret.0)).min();
            let settled = open_value.unwrap_or(end).min(open_shape(rest));
            if settled == end {
                return end;
            }
            end = settled;
        }
    }

    /// Masks every string of a JSON value in place; keys stay.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Prefixes after which [`TAIL_CHARS_MIN`] or more token characters are a secret; the prefix is masked with it.
const PREFIXES: [&str; 2] = ["sk-", "tmprl"];
/// Keywords whose value is masked; keyword and separator stay. Longer spellings first.
const KEYWORDS: [&str; 8] =
    ["authorization", "x-api-key", "api key", "api_key", "api-key", "secret", "token", "password"];

fn mask_shapes(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = lower.as_bytes()[at..].windows(2).position(may_begin_shape) {
        let begin = at + found;
        if let Some((keep_until, end)) = shape_at(text, &lower, begin) {
            out.push_str(&text[kept..keep_until]);
            out.push_str(MASK);
            (kept, at) = (end, end);
        } else {
            at = begin + 1;
        }
    }
    out.push_str(&text[kept..]);
    out
}

/// Whether a shape may begin with these two bytes of lower-case text; all of them do begin so. Most places of most texts
/// are passed over by this look alone.
fn may_begin_shape(two: &[u8]) -> bool {
    matches!(two, b"be" | b"sk" | b"tm" | b"au" | b"x-" | b"ap" | b"se" | b"to" | b"pa")
}

/// A secret that begins at byte `at`: up to where the text is kept, and where the secret ends.
fn shape_at(text: &str, lower: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &lower[at..];
    if let Some(after) = rest.strip_prefix("bearer") {
        let gap = after.len() - after.trim_start().len();
        let start = at + "bearer".len() + gap;
        let end = token_end(text, start);
        if gap > 0 && end - start >= TAIL_CHARS_MIN {
            return Some((start, end));
        }
    }
    for prefix in PREFIXES {
        if rest.starts_with(prefix) && !preceded_by_word(text, at) {
            let end = token_end(text, at + prefix.len());
            if end - at - prefix.len() >= TAIL_CHARS_MIN {
                return Some((at, end));
            }
        }
    }
    KEYWORDS.iter().find_map(|keyword| keyword_value(text, rest, at, keyword))
}

/// The value after `keyword`, an optional quote, `:` or `=`, and an optional quote.
fn keyword_value(text: &str, rest: &str, at: usize, keyword: &str) -> Option<(usize, usize)> {
    let after = rest.strip_prefix(keyword)?;
    let after = after.strip_prefix(['"', '\'']).unwrap_or(after).trim_start_matches([' ', '\t']);
    let after = after.strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
    let after = after.strip_prefix(['"', '\'']).unwrap_or(after);
    let start = at + rest.len() - after.len();
    if after.starts_with("bearer ") || after.starts_with("basic ") {
        let scheme = after.find(' ').unwrap_or(0) + 1;
        let end = token_end(text, start + scheme);
        return (end - start - scheme >= TAIL_CHARS_MIN).then_some((start + scheme, end));
    }
    let value = &text[start..];
    let len = value
        .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '}' | ']'))
        .unwrap_or(value.len());
    (value[..len].chars().count() >= TAIL_CHARS_MIN && !value.starts_with(MASK))
        .then_some((start, start + len))
}

/// Where an unfinished occurrence of `value` begins at the end of the text.
fn open_value(text: &str, value: &str) -> Option<usize> {
    let earliest = text.len().saturating_sub(value.len().saturating_sub(1));
    (earliest..text.len()).find(|at| text.is_char_boundary(*at) && value.starts_with(&text[*at..]))
}

/// Bytes before the end in which an unfinished shape is looked for; a keyword is never further from its value.
const OPEN_SHAPE_BYTES: usize = 512;
/// What is put after an unfinished text to see what it would become.
const PROBE: &str = "00000000";

/// Where an unfinished secret of a usual shape begins; the length of the text when there is none.
fn open_shape(text: &str) -> usize {
    let mut from = text.len().saturating_sub(OPEN_SHAPE_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let window = &text[from..];
    let lower = window.to_ascii_lowercase();
    let (longer, longer_lower) = (format!("{window}{PROBE}"), format!("{lower}{PROBE}"));
    let open_at = |at: usize| {
        let begun = PREFIXES.iter().any(|prefix| prefix.starts_with(&lower[at..]));
        if begun && !preceded_by_word(window, at) {
            return Some(at);
        }
        if !longer_lower.as_bytes().get(at..at + 2).is_some_and(may_begin_shape) {
            return None;
        }
        let (start, end) = shape_at(&longer, &longer_lower, at)?;
        let unfinished = start < window.len() && end > window.len();
        (unfinished && shape_at(window, &lower, at).is_none()).then_some(start)
    };
    let places = window.char_indices().map(|(at, _)| at);
    places.filter_map(open_at).min().map_or(text.len(), |at| from + at)
}

fn token_end(text: &str, start: usize) -> usize {
    let token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '+' | '/' | '=');
    text[start..].find(|c| !token(c)).map_or(text.len(), |len| start + len)
}

fn preceded_by_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(text: &str) -> String {
        Redactor::new([Secret::new("hunter22"), Secret::new("abc")]).text(text)
    }

    #[test]
    fn masks_configured_values_and_shapes() {
        assert_eq!(redact("it is hunter22!"), "it is [REDACTED]!");
        assert_eq!(redact("Bearer abcdefgh12 rest"), "Bearer [REDACTED] rest");
        assert_eq!(redact("key sk-abcdefghij."), "key [REDACTED]");
        assert_eq!(redact("api_key=\"0123456789\", x"), "api_key=\"[REDACTED]\", x");
        assert_eq!(redact("{\"password\":\"longenough\"}"), "{\"password\":\"[REDACTED]\"}");
        assert_eq!(redact("Authorization: Bearer abcdefgh12"), "Authorization: Bearer [REDACTED]");
    }

    #[test]
    fn leaves_ordinary_text_alone() {
        for text in
            ["abc", "task-list-of-things", "the token was short: abc", "risk-averse-people", "ü sk-ab"]
        {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn what_may_become_a_secret_is_not_settled() {
        let redactor = Redactor::new([Secret::new("hunter22")]);
        for (text, settled) in [
            ("it is hunt", "it is "),
            ("it is hunter22", "it is hunter22"),
            ("an ordinary sentence.", "an ordinary sentence."),
            ("the key s", "the key "),
            ("the key sk-abc", "the key "),
            ("the key sk-abc ", "the key sk-abc "),
            ("risk-abc", "risk-abc"),
            ("Bearer abc", "Bearer "),
            ("password: \"ab", "password: \""),
            ("password: ", "password: "),
            ("password: abcdefgk", "password: abcdefgk"),
            ("authorization: bea", "authorization: "),
            ("ü hunter2", "ü "),
        ] {
            assert_eq!(&text[..redactor.settled(text)], settled, "{text}");
        }
    }

    #[test]
    fn settled_beginnings_are_redacted_as_in_the_whole() {
        let redactor = Redactor::new([Secret::new("hunter22")]);
        let whole =
            "say hunter22, token=abcdefghij; Bearer abcdefgh12 and sk-abcdefghijkl, ok? password: no. huntер";
        let redacted = redactor.text(whole);
        for (end, _) in whole.char_indices() {
            let settled = redactor.settled(&whole[..end]);
            let beginning = redactor.text(&whole[..settled]);
            assert!(redacted.starts_with(&beginning), "{beginning:?} of {redacted:?}");
        }
    }

    #[test]
    fn no_shape_is_passed_over() {
        for begin in PREFIXES.iter().chain(&KEYWORDS).chain(&["bearer"]) {
            assert!(may_begin_shape(&begin.as_bytes()[..2]), "{begin}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let secret = Secret::new("hunter22");
        assert_eq!(format!("{secret} {secret:?}"), "[REDACTED] [REDACTED]");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[REDACTED]\"");
    }

    #[test]
    fn redaction_is_idempotent() {
        for text in ["token: abcdefghijk", "Bearer abcdefgh12", "secret=hunter22hunter22"] {
            let once = redact(text);
            assert_eq!(redact(&once), once);
        }
    }
}
