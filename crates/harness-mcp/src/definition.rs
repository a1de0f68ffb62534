//! Tool definitions: from a listing to what is registered, and the digest that the drift guard compares.

use harness_model::{BlockId, clean_terminal, depth_at_most, limits, names, truncate_chars};
use harness_ports::ToolDefinition;
use rmcp::model::Tool;
use serde_json::{Map, Value, json};

/// Characters of a tool name that a registry name can carry.
const NAME_CHARS_MAX: usize = 128;
/// Characters of a description; the rest is cut off.
const DESCRIPTION_CHARS_MAX: usize = 4_000;
/// Bytes of an input schema; a tool with a larger one is not registered.
const SCHEMA_BYTES_MAX: usize = 65_536;

/// SHA-256 of a whole definition. Two definitions with the same digest are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digest(BlockId);

impl Digest {
    /// The digest of everything that can change what the tool does or is taken for.
    pub(crate) fn of(tool: &Tool) -> Self {
        let definition = json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema.as_ref(),
            "outputSchema": tool.output_schema.as_deref(),
            "annotations": tool.annotations.as_ref().map(|a| json!({
                "title": a.title,
                "readOnlyHint": a.read_only_hint,
                "destructiveHint": a.destructive_hint,
                "idempotentHint": a.idempotent_hint,
                "openWorldHint": a.open_world_hint,
            })),
            "deduplicates": deduplicates(tool),
        });
        Self(BlockId::of(sorted(&definition).to_string().as_bytes()))
    }
}

/// What is registered for a listed tool, or why it cannot be.
pub(crate) fn register(prefix: &str, tool: &Tool) -> Result<ToolDefinition, String> {
    check_name(&tool.name)?;
    let input_schema = Value::Object(tool.input_schema.as_ref().clone());
    check_schema(&input_schema)?;
    let hint = |hint: Option<bool>| hint == Some(true);
    Ok(ToolDefinition {
        name: format!("{prefix}.{}", tool.name),
        description: truncate_chars(
            &clean_terminal(tool.description.as_deref().unwrap_or_default()),
            DESCRIPTION_CHARS_MAX,
        ),
        input_schema,
        idempotent: tool
            .annotations
            .as_ref()
            .is_some_and(|a| hint(a.idempotent_hint) || hint(a.read_only_hint)),
        read_only: tool.annotations.as_ref().is_some_and(|a| hint(a.read_only_hint)),
        deduplicates: deduplicates(tool),
    })
}

fn deduplicates(tool: &Tool) -> bool {
    tool.meta.as_ref().and_then(|meta| meta.get(names::DEDUPLICATES_KEY)) == Some(&Value::Bool(true))
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
        return Err(format!("its name is not 1 to {NAME_CHARS_MAX} letters, digits, '_', '-', '.' or '/'"));
    }
    Ok(())
}

fn check_schema(schema: &Value) -> Result<(), String> {
    let text = schema.to_string();
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("its input schema is larger than {SCHEMA_BYTES_MAX} bytes"));
    }
    if !depth_at_most(text.as_bytes(), limits::JSON_DEPTH_MAX) {
        return Err(format!("its input schema is nested deeper than {} levels", limits::JSON_DEPTH_MAX));
    }
    jsonschema::validator_for(schema)
        .map(drop)
        .map_err(|_| "its input schema is not a valid JSON Schema".to_owned())
}

/// The value with the keys of every object sorted, so that equal values have equal texts.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Value::Object(
                entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(definition: Value) -> Tool {
        serde_json::from_value(definition).unwrap()
    }

    fn refund() -> Value {
        json!({"name": "refund", "description": "Pays back.", "inputSchema": {"type": "object", "required": ["a"]}})
    }

    #[test]
    fn the_digest_covers_the_whole_definition_and_no_order_of_keys() {
        let first = Digest::of(&tool(refund()));
        let same = json!({"inputSchema": {"required": ["a"], "type": "object"}, "description": "Pays back.", "name": "refund"});
        assert_eq!(Digest::of(&tool(same)), first);
        let changes = [
            ("title", json!("Refund")),
            ("description", json!("Pays back. Also reads your mail.")),
            ("inputSchema", json!({"type": "object"})),
            ("annotations", json!({"readOnlyHint": true})),
            ("_meta", json!({names::DEDUPLICATES_KEY: true})),
        ];
        for (key, value) in changes {
            let mut changed = refund();
            changed[key] = value;
            assert_ne!(Digest::of(&tool(changed)), first, "{key}");
        }
    }

    #[test]
    fn hints_decide_what_may_be_repeated() {
        let flags = |annotations: Value, meta: Value| {
            let mut definition = refund();
            definition["annotations"] = annotations;
            definition["_meta"] = meta;
            let registered = register("p/s", &tool(definition)).unwrap();
            (registered.idempotent, registered.deduplicates)
        };
        assert_eq!(flags(json!({}), json!({})), (false, false));
        assert_eq!(flags(json!({"readOnlyHint": true}), json!({})), (true, false));
        assert_eq!(flags(json!({"idempotentHint": true, "readOnlyHint": false}), json!({})), (true, false));
        assert_eq!(
            flags(json!({"destructiveHint": false}), json!({names::DEDUPLICATES_KEY: true})),
            (false, true)
        );
        assert_eq!(flags(json!({}), json!({names::DEDUPLICATES_KEY: "true"})), (false, false));
    }

    #[test]
    fn what_does_not_fit_is_cut_or_refused() {
        let mut long = refund();
        long["description"] = json!(format!("\u{1b}[2J{}", "x".repeat(10_000)));
        let registered = register("p/s", &tool(long)).unwrap();
        assert_eq!(registered.name, "p/s.refund");
        assert_eq!(registered.description.chars().count(), DESCRIPTION_CHARS_MAX);
        assert!(!registered.description.contains('\u{1b}'));

        let refused = |key: &str, value: Value| {
            let mut definition = refund();
            definition[key] = value;
            register("p/s", &tool(definition)).unwrap_err()
        };
        assert!(refused("name", json!("rm -rf")).contains("name"));
        assert!(refused("inputSchema", json!({"description": "x".repeat(70_000)})).contains("larger"));
        assert!(refused("inputSchema", json!({"type": 7})).contains("valid JSON Schema"));
        let mut deep = json!({});
        for _ in 0..70 {
            deep = json!({ "not": deep });
        }
        assert!(refused("inputSchema", deep).contains("deeper"));
    }
}
