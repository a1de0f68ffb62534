//! The tools there are, and whether arguments match their schemas.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use harness_agent::{context::tool_chars, intrinsics};
use harness_model::{clean_field, truncate_chars};
use harness_ports::ToolDefinition;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Problems of one call that the model is told.
const PROBLEMS_MAX: usize = 3;
/// Characters of one of them.
const PROBLEM_CHARS_MAX: usize = 240;
/// Steps that a pattern of a schema may take back; schemas come from outside.
const BACKTRACK_MAX: usize = 100_000;
/// Bytes that a compiled pattern of a schema may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The tools there are, the harness's own included.
#[derive(Debug)]
pub(crate) struct ToolRegistry {
    definitions: Arc<[ToolDefinition]>,
    validators: Vec<OnceLock<Option<Validator>>>,
    positions: HashMap<String, usize>,
    chars: u64,
}

impl ToolRegistry {
    /// The harness's own tools and these. A name that is taken is not given away again.
    pub(crate) fn new(catalogue: Vec<ToolDefinition>) -> Self {
        let mut definitions = intrinsics::definitions();
        for tool in catalogue {
            if definitions.iter().any(|known| known.name == tool.name) {
                tracing::warn!(tool = %tool.name, "a second tool of this name is left out");
            } else {
                definitions.push(tool);
            }
        }
        definitions.sort_by(|a, b| a.name.cmp(&b.name));
        let positions = definitions.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        let validators = definitions.iter().map(|_| OnceLock::new()).collect();
        let chars = definitions.iter().map(tool_chars).sum();
        Self { definitions: definitions.into(), validators, positions, chars }
    }

    /// Every tool, sorted by name.
    pub(crate) fn definitions(&self) -> &Arc<[ToolDefinition]> {
        &self.definitions
    }

    /// Characters that the model reads for all of them.
    pub(crate) fn chars(&self) -> u64 {
        self.chars
    }

    /// The tool of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&ToolDefinition> {
        self.positions.get(name).and_then(|at| self.definitions.get(*at))
    }

    /// Checks arguments against the schema of a tool.
    /// Errors: a bounded text for the model that says where and why. Values are not repeated in it.
    pub(crate) fn validate(&self, name: &str, arguments: &Value) -> Result<(), String> {
        let found =
            self.positions.get(name).and_then(|at| self.definitions.get(*at).zip(self.validators.get(*at)));
        let Some((tool, validator)) = found else { return Err(format!("there is no tool {name}")) };
        // A schema is compiled with its first call: many are never called, and compiling is slow.
        let Some(validator) = validator.get_or_init(|| compile(tool)) else {
            return Err(format!("the schema of {name} is not valid, so no call of it can be checked"));
        };
        let problems: Vec<String> =
            validator.iter_errors(arguments).take(PROBLEMS_MAX).map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

fn compile(tool: &ToolDefinition) -> Option<Validator> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX).size_limit(PATTERN_BYTES_MAX);
    let compiled = jsonschema::options().with_pattern_options(patterns).build(&tool.input_schema);
    if let Err(error) = &compiled {
        let reason = truncate_chars(&error.masked().to_string(), PROBLEM_CHARS_MAX);
        tracing::warn!(tool = %tool.name, %reason, "the schema of a tool is not valid");
    }
    compiled.ok()
}

fn problem(error: jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { "at the top".to_owned() } else { format!("at {path}") };
    clean_field(&format!("{place}: {}", error.masked()), Some(PROBLEM_CHARS_MAX)).text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn registry(schema: Value) -> ToolRegistry {
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            input_schema: schema.clone(),
            idempotent: true,
            read_only: true,
            deduplicates: false,
        };
        ToolRegistry::new(vec![tool("shop/orders.get"), tool("load_skill")])
    }

    #[test]
    fn tools_are_sorted_and_own_names_cannot_be_taken() {
        let registry = registry(json!({"type": "object"}));
        let names: Vec<&str> = registry.definitions().iter().map(|tool| tool.name.as_str()).collect();
        assert!(names.is_sorted());
        assert_eq!(names.iter().filter(|name| **name == "load_skill").count(), 1);
        assert!(registry.validate("load_skill", &json!({})).is_err());
    }

    #[test]
    fn problems_say_where_are_bounded_and_repeat_no_value() {
        let item = json!({"type": "string"});
        let registry =
            registry(json!({"properties": {"ids": {"type": "array", "items": item}}, "required": ["a"]}));
        let ids: Vec<u64> = (1_000..1_500).collect();
        let text = registry.validate("shop/orders.get", &json!({"ids": ids})).unwrap_err();
        assert!(text.contains("at /ids/0"), "{text}");
        assert!(!text.contains("1000"), "{text}");
        assert_eq!(text.split("; ").count(), PROBLEMS_MAX, "{text}");
        let long = registry.validate("shop/orders.get", &json!({"ids": "x".repeat(10_000)})).unwrap_err();
        assert!(long.len() < 1_000, "{long}");
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_lets_nothing_pass() {
        for schema in [json!({"type": 7}), json!({"$ref": "https://elsewhere.example/schema.json"})] {
            let text = registry(schema).validate("shop/orders.get", &json!({})).unwrap_err();
            assert!(text.contains("not valid"), "{text}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let registry = registry(json!({"properties": {"a": {"pattern": "^(a+)+(?=x)$"}}}));
        assert!(registry.validate("shop/orders.get", &json!({"a": "a".repeat(5_000)})).is_err());
    }
}
