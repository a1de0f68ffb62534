//! The provider's own items: kept so that they can be sent back to it byte for byte, and to nobody else.
//!
//! An answer keeps them as one or more sets `{"type": KIND, "model": …, "items": […]}`. An item is kept as a JSON value
//! when the value writes itself as the item was written, otherwise as text.

use harness_model::{MASK, ModelOutput};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

/// The items of one answer for [`ModelOutput::raw_items`].
pub(crate) fn set(kind: &str, model: &str, items: &[Value]) -> Vec<Value> {
    vec![json!({"type": kind, "model": model, "items": items})]
}

/// The items of an answer with the model that was asked for them, in order. Nothing for the answer of another provider
/// or of another wire.
pub(crate) fn items_of<'a>(
    output: &'a ModelOutput,
    provider: &str,
    kind: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let sets = if output.provider == provider { output.raw_items.as_slice() } else { &[] };
    let sets = sets.iter().filter(move |set| set.get("type").is_some_and(|found| found == kind));
    let kind_fits: Vec<_> = sets.collect();
    kind_fits.into_iter().flat_map(|set| {
        let model = set.get("model").and_then(Value::as_str).unwrap_or_default();
        let items = set.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().map(move |item| (model, item))
    })
}

/// An item in the form in which it is kept.
pub(crate) fn kept(item: &RawValue) -> Value {
    let text = item.get();
    match serde_json::from_str::<Value>(text) {
        Ok(value) if without_space(text) == value.to_string().as_str() => value,
        Ok(_) | Err(_) => Value::String(text.to_owned()),
    }
}

/// A kept item as it was; `None` when masking has left something that is no longer JSON.
pub(crate) fn restored(item: &Value) -> Option<Box<RawValue>> {
    match item {
        Value::String(text) => RawValue::from_string(text.clone()).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            to_raw_value(item).ok()
        }
    }
}

/// A kept item as a value, whatever form it has.
pub(crate) fn value_of(item: &Value) -> Value {
    match item {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => item.clone(),
    }
}

/// Whether a secret was masked somewhere in it: a seal over it is broken then, and its provider would refuse it.
pub(crate) fn is_masked(item: &Value) -> bool {
    match item {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(fields) => fields.values().any(is_masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A JSON text without the space around its values.
fn without_space(text: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |c: &char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        in_string || !matches!(c, ' ' | '\t' | '\r' | '\n')
    };
    text.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn items_come_back_byte_for_byte() {
        for (text, is_value) in [
            (r#"{"b":"x y","a":[1,2.5,null],"c":{}}"#, true),
            (r#"{"n":1.10}"#, false),
            (r#"{"n":12345678901234567890123}"#, false),
            (r#"{"n":1e3}"#, false),
            (r#"{"a":1,"a":2}"#, false),
            (r#"{"t":"caf\u00e9 \/"}"#, false),
        ] {
            let kept = kept(&raw(text));
            assert_eq!(kept.is_object(), is_value, "{text}");
            assert_eq!(restored(&kept).unwrap().get(), text);
        }
        let spaced = kept(&raw("{ \"a\" : \"b \\\" c\" ,\n \"d\":1 }"));
        assert_eq!(restored(&spaced).unwrap().get(), r#"{"a":"b \" c","d":1}"#);
    }

    #[test]
    fn masks_are_noticed() {
        let masked = json!({"a": [{"sealed": format!("x{MASK}y")}]});
        assert!(is_masked(&masked) && !is_masked(&json!({"a": ["b"]})));
        assert!(restored(&Value::String(format!("{{\"token\":{MASK}"))).is_none());
    }
}
