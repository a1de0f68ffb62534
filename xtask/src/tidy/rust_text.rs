//! Rust source as far as the rules need it: code without comments and literals, and the functions in it.

/// The source with every comment, string and character literal replaced by spaces. Length and lines stay the same.
pub(super) fn mask(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut masked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        for byte in masked.iter_mut().take(end).skip(at).filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
        at = end;
    }
    // Literals and comments begin and end at ASCII characters, so what is left is whole characters.
    String::from_utf8_lossy(&masked).into_owned()
}

/// Where the comment or literal that begins at `at` ends; `at` itself when none begins there.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment_length(rest),
        [b'"', ..] => string_length(rest),
        [b'\'', ..] => char_length(rest),
        [b'r', ..] | [b'b' | b'c', b'r', ..] if !is_word_before(bytes, at) => raw_string_length(rest),
        _ => 0,
    };
    at + length
}

fn is_word_before(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn block_comment_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal has its closing quote after an escape or after one character; a lifetime has not.
fn char_length(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'\\') => {
            let close = rest.iter().skip(3).position(|byte| *byte == b'\'');
            close.map_or(0, |close| close + 4)
        }
        Some(first) => {
            let width = match first {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
        None => 0,
    }
}

fn raw_string_length(rest: &[u8]) -> usize {
    let prefix = if rest[0] == b'r' { 1 } else { 2 };
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &rest[open + 1..];
    body.windows(close.len())
        .position(|window| window == close)
        .map_or(rest.len(), |found| open + 1 + found + close.len())
}

/// Line of a byte offset, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Every word of masked code with its offset.
pub(super) fn words(masked: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = masked.as_bytes();
    let starts = (0..bytes.len()).filter(|at| is_word(bytes[*at]) && !is_word_before(bytes, *at));
    starts.map(|start| {
        let end = bytes[start..]
            .iter()
            .position(|byte| !is_word(*byte))
            .map_or(bytes.len(), |length| start + length);
        (start, &masked[start..end])
    })
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Line of the word `fn`, from 1.
    pub(super) line: usize,
    /// Lines from there to the closing brace, both counted.
    pub(super) lines: usize,
}

/// The functions of masked code, nested ones included.
pub(super) fn functions(masked: &str) -> Vec<Function> {
    words(masked)
        .filter(|(_, word)| *word == "fn")
        .filter_map(|(at, _)| {
            let rest = &masked[at + 2..];
            let name: String =
                rest.trim_start().chars().take_while(|ch| ch.is_alphanumeric() || *ch == '_').collect();
            let end = body_end(&masked.as_bytes()[at..]).filter(|_| !name.is_empty())?;
            let line = line_of(masked, at);
            Some(Function { name, line, lines: line_of(masked, at + end) - line + 1 })
        })
        .collect()
}

/// Offset of the brace that closes the body of a function; `None` when it has no body.
fn body_end(code: &[u8]) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (at, byte) in code.iter().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if brackets == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && brackets == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_disappear_and_nothing_else() {
        let cases = [
            ("a // fn { \nb", "a ........\nb"),
            ("a /* { /* } */ { */ b", "a ................. b"),
            (r#"f("{ \" }") g"#, "f(........) g"),
            (r##"x = r#"{ " "#; y"##, "x = .........; y"),
            ("br\"{\" c", "..... c"),
            ("m('{', '\\'', '\u{e9}', '\\u{7b}')", "m(..., ...., ...., ........)"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("r#type var\"{\"", "r#type var..."),
        ];
        for (source, expected) in cases {
            assert_eq!(mask(source), expected.replace('.', " "), "{source}");
        }
    }

    #[test]
    fn functions_are_measured_from_fn_to_the_closing_brace() {
        let source = "fn a() {\n  let s = \"}\";\n  fn b(x: [u8; 2]) -> u8 { x[0] }\n}\ntrait T {\n  fn c(&self);\n  fn d() {\n  }\n}\ntype F = fn(u8);\n";
        let found: Vec<(String, usize, usize)> =
            functions(&mask(source)).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        let expected = [("a", 1, 4), ("b", 3, 1), ("d", 7, 2)];
        assert_eq!(found, expected.map(|(name, line, lines)| (name.to_owned(), line, lines)));
    }
}
