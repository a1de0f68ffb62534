//! Requests as ProtoJSON readers must take them, before they become types of the protocol crate.

use harness_model::{limits, truncate_chars};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::A2aError;

/// Characters of a parser's message that travel back to the sender, who may have chosen some of them.
const PARSE_MESSAGE_CHARS_MAX: usize = 300;

/// Accepts the field names of the `.proto` file (`task_id`) besides the JSON ones and drops nulls, which mean absence.
/// Free-form JSON under `metadata` and `data` is left alone. The depth was bounded by the parser.
pub(crate) fn normalize(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(fields) => {
            *fields = std::mem::take(fields).into_iter().fold(Map::new(), normalized_field);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn normalized_field(mut fields: Map<String, Value>, (key, mut value): (String, Value)) -> Map<String, Value> {
    let free_form = key == "metadata" || key == "data";
    if value.is_null() && key != "data" {
        return fields;
    }
    if !free_form {
        normalize(&mut value);
    }
    if key.contains('_') {
        // The JSON name wins when both are there.
        fields.entry(camel_case(&key)).or_insert(value);
    } else {
        fields.insert(key, value);
    }
    fields
}

fn camel_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut upper = false;
    for ch in key.chars() {
        if ch == '_' {
            upper = true;
        } else if std::mem::take(&mut upper) {
            out.push(ch.to_ascii_uppercase());
        } else {
            out.push(ch);
        }
    }
    out
}

/// Where requests hold objects of known types. A reader of such a type also takes an array, as its fields in their order.
const OBJECTS: [&str; 5] = [
    "/message",
    "/configuration",
    "/configuration/taskPushNotificationConfig",
    "/configuration/taskPushNotificationConfig/authentication",
    "/authentication",
];

/// Reads normalized parameters as a request type.
pub(crate) fn parse<T: DeserializeOwned>(params: Value) -> Result<T, A2aError> {
    let is_wrong = |path: &&str| params.pointer(path).is_some_and(|value| !value.is_object());
    if let Some(path) = OBJECTS.into_iter().find(is_wrong) {
        let field = path.trim_start_matches('/').replace('/', ".");
        return Err(A2aError::invalid_field(&field, format!("{field} must be an object")));
    }
    serde_json::from_value(params).map_err(|e| {
        let text = truncate_chars(&e.to_string(), PARSE_MESSAGE_CHARS_MAX);
        A2aError::invalid_field("params", format!("invalid parameters: {text}"))
    })
}

/// Checks what the protocol crate reads too kindly: parts with two contents or with fields of wrong types.
/// Base64 of either alphabet, padded or not, becomes the standard form.
pub(crate) fn check_parts(params: &mut Value) -> Result<(), A2aError> {
    let Some(parts) = params.pointer_mut("/message/parts") else { return Ok(()) };
    let Value::Array(parts) = parts else {
        return Err(A2aError::invalid_field("message.parts", "message.parts must be an array"));
    };
    if parts.is_empty() || parts.len() > limits::MESSAGE_PARTS_MAX {
        let text = format!("a message has 1 to {} parts", limits::MESSAGE_PARTS_MAX);
        return Err(A2aError::invalid_field("message.parts", text));
    }
    for (index, part) in parts.iter_mut().enumerate() {
        check_part(part).map_err(|problem| {
            let field = format!("message.parts[{index}]");
            A2aError::invalid_field(&field, format!("{field} {problem}"))
        })?;
    }
    Ok(())
}

fn check_part(part: &mut Value) -> Result<(), &'static str> {
    let Value::Object(fields) = part else { return Err("must be an object") };
    let contents = ["text", "raw", "url", "data"].iter().filter(|key| fields.contains_key(**key)).count();
    if contents != 1 {
        return Err("must have exactly one of text, raw, url and data");
    }
    for key in ["text", "raw", "url", "filename", "mediaType"] {
        if fields.get(key).is_some_and(|value| !value.is_string()) {
            return Err("has a field of the wrong type: text, raw, url, filename and mediaType are strings");
        }
    }
    if fields.get("metadata").is_some_and(|value| !value.is_object()) {
        return Err("has metadata that is not an object");
    }
    if let Some(Value::String(raw)) = fields.get_mut("raw") {
        *raw = standard_base64(raw);
    }
    Ok(())
}

fn standard_base64(text: &str) -> String {
    let mut out: String = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn proto_names_become_json_names_outside_of_free_form_json() {
        let mut value = json!({
            "message": {"message_id": "m", "task_id": null, "metadata": {"participant_id": "a", "x_y": null},
                "parts": [{"data": {"snake_case": {"n_1": 1}}}]},
            "history_length": 1, "historyLength": 2
        });
        normalize(&mut value);
        let expected = json!({
            "message": {"messageId": "m", "metadata": {"participant_id": "a", "x_y": null},
                "parts": [{"data": {"snake_case": {"n_1": 1}}}]},
            "historyLength": 2
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_part_has_one_content_of_the_right_type() {
        let check =
            |part: Value| check_parts(&mut json!({"message": {"parts": [part]}})).map_err(|e| e.message);
        assert_eq!(check(json!({"data": null})), Ok(()));
        for wrong in [
            json!({}),
            json!({"text": "a", "url": "b"}),
            json!({"text": 1}),
            json!({"text": "a", "metadata": 1}),
            json!({"text": "a", "mediaType": []}),
            json!("text"),
        ] {
            assert!(check(wrong.clone()).unwrap_err().starts_with("message.parts[0] "), "{wrong}");
        }
    }

    #[test]
    fn base64_of_either_alphabet_is_understood() {
        assert_eq!(standard_base64("-_8"), "+/8=");
        assert_eq!(standard_base64("AAAA"), "AAAA");
    }
}
