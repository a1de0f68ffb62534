//! YAML front matter of Markdown files: a flat map between two `---` lines.

use serde::de::DeserializeOwned;

use crate::limits;

/// Splits a file into its typed front matter and its body, trimmed. The error says what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<(T, String), String> {
    let (yaml, body) = split(text)?.ok_or("must begin with a front matter between two `---` lines")?;
    Ok((typed(&yaml)?, body))
}

/// The same for files that may do without a front matter.
pub(crate) fn parse_optional<T: DeserializeOwned + Default>(text: &str) -> Result<(T, String), String> {
    match split(text)? {
        Some((yaml, body)) => Ok((typed(&yaml)?, body)),
        None => Ok((T::default(), text.replace("\r\n", "\n").trim().to_owned())),
    }
}

fn typed<T: DeserializeOwned>(yaml: &str) -> Result<T, String> {
    if let Some(line) = reference_line(yaml) {
        return Err(format!(
            "line {}: anchors, aliases and tags (`&`, `*`, `!`) are not allowed; put the text in quotes",
            line + 1
        ));
    }
    serde_yaml_ng::from_str(yaml).map_err(|error| format!("front matter: {error}"))
}

fn split(text: &str) -> Result<Option<(String, String)>, String> {
    let text = text.replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---").map(|rest| rest.trim_start_matches([' ', '\t'])) else {
        return Ok(None);
    };
    let Some(rest) = rest.strip_prefix('\n') else {
        return Ok(None);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let body = rest[at + line.len()..].trim().to_owned();
            // The empty line stands for the opening one, so that lines are numbered as in the file.
            return Ok(Some((format!("\n{}", &rest[..at]), body)));
        }
        at += line.len();
        if at > limits::FRONT_MATTER_BYTES_MAX {
            return Err(format!("the front matter is longer than {} bytes", limits::FRONT_MATTER_BYTES_MAX));
        }
    }
    Err("the front matter has no closing `---` line".to_owned())
}

/// First line (from 0) on which a YAML anchor, alias or tag may begin.
///
/// The parser resolves them without a word, so they are found in the text. Front matter is flat; where this errs, it
/// errs towards refusing, and quotes or a block (`|`) always help.
fn reference_line(yaml: &str) -> Option<usize> {
    let mut block_indent: Option<usize> = None;
    let mut flow = false;
    for (number, line) in yaml.lines().enumerate() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if block_indent.is_some_and(|outer| indent > outer) {
            continue;
        }
        block_indent = None;
        let value = value_of(content);
        flow |= value.starts_with(['[', '{']) || content.starts_with(['[', '{']);
        if value.starts_with(['|', '>']) {
            block_indent = Some(indent);
        }
        if begins_reference(content) || begins_reference(value) || (flow && reference_in_flow(content)) {
            return Some(number);
        }
    }
    None
}

/// What follows list and key markers at the start of a line.
fn value_of(content: &str) -> &str {
    let mut rest = content;
    while let Some(item) = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("? ")) {
        rest = item.trim_start();
    }
    // A quoted key may hold colons of its own.
    let key_end = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(0, |at| at + 2),
        Some(_) | None => 0,
    };
    let after_key = rest[key_end..].find(':').map(|at| &rest[key_end + at + 1..]);
    after_key.filter(|after| after.starts_with([' ', '\t', '*', '&'])).map_or(rest, str::trim_start)
}

fn begins_reference(text: &str) -> bool {
    text.starts_with(['&', '*', '!']) && text.chars().nth(1).is_some_and(|c| !c.is_whitespace())
}

fn reference_in_flow(content: &str) -> bool {
    let mut before = ' ';
    for ch in content.chars() {
        if matches!(ch, '&' | '*' | '!') && matches!(before, '[' | '{' | ',' | ':' | '?' | '"' | '\'') {
            return true;
        }
        if !ch.is_whitespace() {
            before = ch;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Map = BTreeMap<String, serde_yaml_ng::Value>;

    #[test]
    fn splits_at_the_first_closing_line() {
        let (map, body) = parse::<Map>("---\r\na: b\r\n---  \r\n\r\n# T\r\n---\r\nx\r\n").unwrap();
        assert_eq!(map["a"].as_str(), Some("b"));
        assert_eq!(body, "# T\n---\nx");
        let (map, body) = parse_optional::<Map>("no front matter\n").unwrap();
        assert!(map.is_empty() && body == "no front matter");
    }

    #[test]
    fn says_what_is_missing_or_too_long() {
        assert!(parse::<Map>("a: b").unwrap_err().contains("must begin"));
        assert!(parse::<Map>("----\na: b\n---\n").unwrap_err().contains("must begin"));
        assert!(parse::<Map>("---\na: b\n").unwrap_err().contains("no closing"));
        let long = format!("---\na: {}\n---\n", "x\n".repeat(20_000));
        assert!(parse::<Map>(&long).unwrap_err().contains("longer than"));
    }

    #[test]
    fn anchors_aliases_and_tags_are_refused_wherever_they_can_stand() {
        for yaml in [
            "a: &x b",
            "a: *x",
            "a:\n  *x",
            "a: !!str b",
            "- &x b",
            "- - *x",
            "a: [b, *x]",
            "a: {b: *x}",
            "a: {\"b\":*x}",
            "a: [b,\n  *x]",
            "&x a: b",
            "? *x",
            "\"a:b\": *x",
            "a: | \n  text\nb: *x",
            "a: |\n  text\n&x b: c",
        ] {
            assert!(reference_line(yaml).is_some(), "{yaml}");
        }
        for yaml in [
            "description: R&D, *bold*, and so on!",
            "description: \"*quoted*\"",
            "description: |\n  * a list\n  * and more & more\nname: x",
            "# *comment*\nname: x",
            "url: http://x/*?a&b",
            "a: [b, c]",
        ] {
            assert_eq!(reference_line(yaml), None, "{yaml}");
        }
    }

    #[test]
    fn a_billion_laughs_and_deep_nesting_end_quickly() {
        let mut bomb = "a0: &a0 lol\n".to_owned();
        for n in 1..60 {
            bomb.push_str(&format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1));
        }
        assert!(typed::<Map>(&bomb).unwrap_err().contains("anchors"));
        let deep = format!("a: {}", "[".repeat(limits::FRONT_MATTER_BYTES_MAX - 8));
        assert!(typed::<Map>(&deep).is_err());
        let closed = format!("a: {}{}", "[".repeat(4_000), "]".repeat(4_000));
        assert!(typed::<Map>(&closed).is_err());
    }
}
