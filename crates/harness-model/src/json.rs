//! JSON from outside: bounded before it becomes a value.

use serde_json::Value;

/// Why bytes were not accepted as JSON. `Display` is safe to show to the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseJsonError {
    /// Not JSON.
    #[error("not valid JSON at line {line}, column {column}")]
    Invalid {
        /// 1-based line.
        line: usize,
        /// 1-based column.
        column: usize,
    },
    /// Nested too deeply.
    #[error("JSON is nested deeper than {0} levels")]
    TooDeep(usize),
}

/// Parses JSON whose nesting is at most `depth_max` levels; the depth is checked before parsing.
pub fn parse_json_bounded(bytes: &[u8], depth_max: usize) -> Result<Value, ParseJsonError> {
    if !depth_at_most(bytes, depth_max) {
        return Err(ParseJsonError::TooDeep(depth_max));
    }
    serde_json::from_slice(bytes).map_err(|e| ParseJsonError::Invalid { line: e.line(), column: e.column() })
}

/// Whether brackets outside of strings nest at most `depth_max` levels. Reads each byte once and allocates nothing.
pub fn depth_at_most(bytes: &[u8], depth_max: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > depth_max {
                    return false;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert!(depth_at_most(br#"{"a":"[[[[\"[["}"#, 1));
        assert!(!depth_at_most(b"[[[]]]", 2));
        let deep = "[".repeat(100_000);
        assert_eq!(parse_json_bounded(deep.as_bytes(), 64), Err(ParseJsonError::TooDeep(64)));
    }

    #[test]
    fn says_where() {
        let error = parse_json_bounded(b"{\n  nope", 64).unwrap_err();
        assert_eq!(error.to_string(), "not valid JSON at line 2, column 3");
    }
}
