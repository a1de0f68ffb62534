//! The id of an answer, read from a frame that is cut off or broken.

use rmcp::model::RequestId;

/// The `id` of a JSON-RPC answer; `None` when the frame has none at its top level, or is no answer (has a `method`).
///
/// Reads each byte at most once and allocates nothing but the id.
pub(super) fn answer_id(frame: &[u8]) -> Option<RequestId> {
    let mut at = frame.iter().position(|b| !b.is_ascii_whitespace())?;
    if frame[at] != b'{' {
        return None;
    }
    at += 1;
    let (mut depth, mut id) = (1_usize, None);
    while at < frame.len() && depth > 0 {
        match frame[at] {
            b'"' => {
                let end = string_end(frame, at)?;
                if depth == 1 && is_key(frame, end) {
                    match &frame[at..end] {
                        b"\"method\"" => return None,
                        b"\"id\"" => id = Some(value_after(frame, end)?),
                        _ => {}
                    }
                }
                at = end;
                // With the id in hand the rest matters only for a `method`, which comes before any large part.
                if id.is_some() && at > HEAD_BYTES {
                    return id;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    id
}

/// How far a `method` is looked for once the id is known.
const HEAD_BYTES: usize = 4_096;

/// The index after the closing quote of the string that opens at `at`; the end of the frame when it is cut off.
fn string_end(frame: &[u8], at: usize) -> Option<usize> {
    let mut escaped = false;
    for (offset, byte) in frame.get(at + 1..)?.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + offset + 2),
            _ => {}
        }
    }
    Some(frame.len())
}

fn is_key(frame: &[u8], end: usize) -> bool {
    frame[end..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':')
}

fn value_after(frame: &[u8], key_end: usize) -> Option<RequestId> {
    let colon = key_end + frame[key_end..].iter().position(|b| *b == b':')?;
    let start = colon + 1 + frame[colon + 1..].iter().position(|b| !b.is_ascii_whitespace())?;
    let end = match frame[start] {
        b'"' => string_end(frame, start)?,
        _ => start + frame[start..].iter().position(|b| !matches!(b, b'0'..=b'9' | b'-'))?,
    };
    serde_json::from_slice(&frame[start..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(frame: &str) -> Option<String> {
        answer_id(frame.as_bytes()).map(|id| id.to_string())
    }

    #[test]
    fn finds_the_id_of_broken_answers_only() {
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"id":9,"#).as_deref(), Some("7"));
        assert_eq!(id(r#" {"result":{"id":"x","a":"\"}"}, "id" : "q-1", "error"#).as_deref(), Some("q-1"));
        assert_eq!(id(r#"{"id":12"#), None, "a cut number may go on");
        assert_eq!(id(r#"{"id":3,"method":"ping"}"#), None);
        assert_eq!(id(r#"{"id":{"a":1},"result":1}"#), None);
        assert_eq!(id(r#"["id",1]"#), None);
        assert_eq!(id("plain words"), None);
        assert_eq!(id(""), None);
        assert_eq!(id(r#"{"id"#), None);
        assert_eq!(id(r#"{"id":"#), None);
    }

    #[test]
    fn never_panics_on_any_cut() {
        let frame = r#"{"jsonrpc":"2.0","id":"a\"b","result":{"x":[1,{"y":"\\"}]}}"#;
        for cut in 0..=frame.len() {
            answer_id(&frame.as_bytes()[..cut]);
        }
    }
}
