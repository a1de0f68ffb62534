//! Arguments of the demo's tools: schemas, and reading what a client sends.

use rmcp::{
    ErrorData,
    model::{JsonObject, RequestMetaObject, Tool, ToolAnnotations},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A tool whose arguments are all required. `properties` maps each to its schema.
pub(super) fn tool(name: &'static str, description: &'static str, properties: Value) -> Tool {
    let required: Vec<Value> =
        properties.as_object().map(|map| map.keys().cloned().map(Value::from).collect()).unwrap_or_default();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), Value::Array(required));
    schema.insert("additionalProperties".to_owned(), json!(false));
    Tool::new(name, description, schema)
}

/// The same tool, which only reads.
pub(super) fn reads_only(tool: Tool) -> Tool {
    tool.with_annotations(ToolAnnotations::new().read_only(true).idempotent(true))
}

/// Reads arguments. The error names what is wrong with them and is safe to show.
pub(super) fn read<T: DeserializeOwned>(arguments: &JsonObject) -> Result<T, ErrorData> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

/// The idempotency key of a call.
pub(super) fn key_of(meta: &RequestMetaObject) -> Option<String> {
    Some(meta.get(harness_model::names::IDEMPOTENCY_KEY)?.as_str()?.to_owned())
}
