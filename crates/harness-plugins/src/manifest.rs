//! `plugin.json`: the manifest of a plugin. Source: Agent Plugins 1.0, sections 5 and 8.1.

use harness_model::parse_json_bounded;
use serde_json::{Map, Value};

use crate::{limits, report::quoted};

/// The only schema this build knows.
const SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
/// Optional fields that are plain strings.
const STRING_FIELDS: [&str; 5] = ["version", "description", "homepage", "repository", "license"];
/// Every field of `author`, each a string.
const AUTHOR_FIELDS: [&str; 3] = ["name", "email", "url"];

/// What the harness keeps of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) description: Option<String>,
    /// What was ignored.
    pub(crate) notes: Vec<String>,
}

/// Reads a manifest. The error says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
    let value = parse_json_bounded(text.as_bytes(), limits::JSON_DEPTH_MAX).map_err(|e| e.to_string())?;
    let Value::Object(fields) = value else {
        return Err("must be a JSON object".to_owned());
    };
    match fields.get("$schema") {
        Some(Value::String(schema)) if schema == SCHEMA => {}
        Some(Value::String(schema)) => {
            return Err(format!("$schema {} is not supported; this build knows {SCHEMA}", quoted(schema)));
        }
        Some(_) | None => return Err(format!("$schema is required and must be {SCHEMA}")),
    }
    let name = match fields.get("name") {
        Some(Value::String(name)) if valid_name(name) => name.clone(),
        Some(Value::String(name)) => {
            return Err(format!(
                "name {} is not valid: 1 to 64 lower-case letters, digits, `-` and `.`, beginning and ending with a \
                 letter or digit, without `--` and `..`",
                quoted(name)
            ));
        }
        Some(_) | None => return Err("name is required and must be a string".to_owned()),
    };
    check_metadata(&fields)?;
    let text_of = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(Manifest {
        name,
        version: text_of("version"),
        description: text_of("description"),
        notes: ignored(&fields),
    })
}

fn check_metadata(fields: &Map<String, Value>) -> Result<(), String> {
    if let Some(key) = STRING_FIELDS.into_iter().find(|key| fields.get(*key).is_some_and(|v| !v.is_string()))
    {
        return Err(format!("{key} must be a string"));
    }
    match fields.get("author") {
        None => {}
        Some(Value::Object(author)) => {
            for (key, value) in author {
                if !AUTHOR_FIELDS.contains(&key.as_str()) {
                    return Err(format!(
                        "author has no field {}; it may have name, email and url",
                        quoted(key)
                    ));
                }
                if !value.is_string() {
                    return Err(format!("author.{key} must be a string"));
                }
            }
        }
        Some(_) => return Err("author must be an object with name, email and url".to_owned()),
    }
    match fields.get("keywords") {
        None => Ok(()),
        Some(Value::Array(words)) if words.iter().all(Value::is_string) => Ok(()),
        Some(_) => Err("keywords must be a list of strings".to_owned()),
    }
}

/// The two violations that the specification wants reported and ignored.
fn ignored(fields: &Map<String, Value>) -> Vec<String> {
    let known = |key: &str| {
        matches!(key, "$schema" | "name" | "author" | "keywords" | "extensions")
            || STRING_FIELDS.contains(&key)
    };
    let mut notes: Vec<String> = fields
        .keys()
        .filter(|key| !known(key))
        .take(limits::FOLDER_ENTRIES_MAX)
        .map(|key| format!("plugin.json: unknown field {} is ignored", quoted(key)))
        .collect();
    if fields.get("extensions").is_some_and(|value| !value.is_object()) {
        notes.push("plugin.json: extensions is not an object and is ignored".to_owned());
    }
    notes
}

fn valid_name(name: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = name.bytes().next().is_some_and(alphanumeric) && name.bytes().last().is_some_and(alphanumeric);
    ends && name.len() <= limits::NAME_CHARS_MAX
        && name.bytes().all(|b| alphanumeric(b) || b == b'-' || b == b'.')
        && !name.contains("--")
        && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(fields: &str) -> Result<Manifest, String> {
        parse(&format!("{{\"$schema\":\"{SCHEMA}\"{fields}}}"))
    }

    #[test]
    fn accepts_the_whole_manifest() {
        let manifest = with(
            r#","name":"acme.tools","version":"x","description":"d","author":{"name":"n","email":"e","url":"u"},
               "homepage":"h","repository":"r","license":"l","keywords":["k"],"extensions":{"com.example":{"a":1}}"#,
        )
        .unwrap();
        assert_eq!(manifest.name, "acme.tools");
        assert_eq!(manifest.version.as_deref(), Some("x"));
        assert!(manifest.notes.is_empty());
    }

    #[test]
    fn reports_and_ignores_only_unknown_fields_and_odd_extensions() {
        let manifest = with(r#","name":"a","hooks":1,"extensions":[]"#).unwrap();
        assert_eq!(
            manifest.notes,
            [
                "plugin.json: unknown field `hooks` is ignored",
                "plugin.json: extensions is not an object and is ignored"
            ]
        );
    }

    #[test]
    fn everything_else_is_fatal_and_named() {
        for (fields, part) in [
            ("", "name is required"),
            (r#","name":7"#, "name is required"),
            (r#","name":"a","version":1"#, "version must be a string"),
            (r#","name":"a","author":"me""#, "author must be an object"),
            (r#","name":"a","author":{"name":1}"#, "author.name must be a string"),
            (r#","name":"a","author":{"phone":"1"}"#, "author has no field `phone`"),
            (r#","name":"a","keywords":[1]"#, "keywords must be a list of strings"),
        ] {
            let error = with(fields).unwrap_err();
            assert!(error.contains(part), "{fields}: {error}");
        }
        assert!(parse("[]").unwrap_err().contains("JSON object"));
        assert!(parse("{").unwrap_err().contains("line 1"));
        assert!(parse(r#"{"name":"a"}"#).unwrap_err().contains("$schema is required"));
        assert!(parse(r#"{"$schema":"https://x/2.0.0","name":"a"}"#).unwrap_err().contains("not supported"));
    }

    #[test]
    fn names_follow_the_specification() {
        for name in ["my-plugin", "acme.tools", "lint3r", "a", "0"] {
            assert!(valid_name(name), "{name}");
        }
        for name in [
            "",
            "My-Plugin",
            "-start",
            "end-",
            ".a",
            "has--double",
            "too.many..dots",
            "a/b",
            "ä",
            &"x".repeat(65),
        ] {
            assert!(!valid_name(name), "{name}");
        }
    }
}
