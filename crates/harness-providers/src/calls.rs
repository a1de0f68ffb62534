//! Tool calls as they come from a wire, and what becomes of them.

use harness_model::{
    CallId, RequestedCall,
    limits::{CALL_ARGUMENTS_BYTES_MAX, CALLS_PER_TURN_MAX},
};
use serde_json::value::{RawValue, to_raw_value};

use crate::tool_names::ToolNames;

/// The model asked for more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallsError {
    #[error("the answer holds more than {CALLS_PER_TURN_MAX} tool calls")]
    TooMany,
    #[error("the arguments of a tool call are larger than {CALL_ARGUMENTS_BYTES_MAX} bytes")]
    ArgumentsTooLarge,
}

/// One call in the wire's terms; what is missing is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The exact text.
    pub(crate) arguments: String,
}

/// How the answer with the calls ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As the model wanted.
    Whole,
    /// By a limit: the last call may lack its end.
    Cut,
}

/// Refuses one call too many.
pub(crate) fn check_count(calls: usize) -> Result<(), CallsError> {
    if calls > CALLS_PER_TURN_MAX { Err(CallsError::TooMany) } else { Ok(()) }
}

/// Refuses arguments that are too large.
pub(crate) fn check_arguments(arguments: &str) -> Result<(), CallsError> {
    if arguments.len() > CALL_ARGUMENTS_BYTES_MAX { Err(CallsError::ArgumentsTooLarge) } else { Ok(()) }
}

/// The argument text in a field that holds it as a string as a rule, and as an object from some servers: that is then
/// the whole of it, digit for digit.
pub(crate) fn arguments_text(raw: Option<&RawValue>) -> String {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return String::new() };
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// The arguments of an earlier call as servers want to read them again: an object. What the model wrote in its place is
/// the `value` of one, so that the model sees its mistake and the server does not stumble over it. Nothing is `{}`.
pub(crate) fn arguments_object(arguments: &str) -> Box<RawValue> {
    let wrapped = |value: &RawValue| RawValue::from_string(format!("{{\"value\":{}}}", value.get()));
    let text = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
    let raw = match RawValue::from_string(text.to_owned()) {
        Ok(raw) if raw.get().starts_with('{') => Ok(raw),
        Ok(raw) => wrapped(&raw),
        Err(_) => to_raw_value(arguments).and_then(|text| wrapped(&text)),
    };
    raw.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The calls of a complete answer, with registry names and ids that tell them apart.
pub(crate) fn requested(calls: Vec<WireCall>, names: &ToolNames, ending: Ending) -> Vec<RequestedCall> {
    let last = calls.len().saturating_sub(1);
    let mut requested: Vec<RequestedCall> = Vec::with_capacity(calls.len());
    for (position, call) in calls.into_iter().enumerate() {
        let id = if call.id.is_empty() { format!("call_{position}") } else { call.id };
        let known = |id: &str| requested.iter().any(|call| call.call_id.as_str() == id);
        // Two calls with one id could not be told apart by their results.
        let id = if known(&id) { format!("{id}_{position}") } else { id };
        let name = names.registry(&call.name).to_owned();
        let may_lack_its_end = ending == Ending::Cut && position == last;
        let arguments = match call.arguments.trim() {
            // A call that was cut off before its first argument must not run without any.
            "" | "{}" if may_lack_its_end => String::new(),
            "" => "{}".to_owned(),
            _ => call.arguments,
        };
        requested.push(RequestedCall { call_id: CallId::new(id), name, arguments });
    }
    requested
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_sent_again_are_objects_and_keep_their_text() {
        for (arguments, object) in [
            (
                r#"{ "n": 1.10, "m": 12345678901234567890123 }"#,
                r#"{ "n": 1.10, "m": 12345678901234567890123 }"#,
            ),
            ("[1, 2]", r#"{"value":[1, 2]}"#),
            ("7", r#"{"value":7}"#),
            ("{not json", r#"{"value":"{not json"}"#),
            (" ", "{}"),
        ] {
            assert_eq!(arguments_object(arguments).get(), object, "{arguments}");
        }
    }

    fn call(id: &str, arguments: &str) -> WireCall {
        WireCall { id: id.to_owned(), name: "a_b".to_owned(), arguments: arguments.to_owned() }
    }

    fn shown(calls: Vec<WireCall>, ending: Ending) -> Vec<String> {
        let calls = requested(calls, &ToolNames::new(["a.b"]), ending);
        calls.iter().map(|call| format!("{} {} {}", call.call_id, call.name, call.arguments)).collect()
    }

    #[test]
    fn ids_are_made_unique_and_names_mapped_back() {
        let calls = vec![call("x", "{}"), call("x", "{ }"), call("", "no json")];
        assert_eq!(shown(calls, Ending::Whole), ["x a.b {}", "x_1 a.b { }", "call_2 a.b no json"]);
    }

    #[test]
    fn a_call_without_its_end_gets_no_arguments() {
        let calls = || vec![call("x", ""), call("y", "")];
        assert_eq!(shown(calls(), Ending::Whole), ["x a.b {}", "y a.b {}"]);
        assert_eq!(shown(calls(), Ending::Cut), ["x a.b {}", "y a.b "]);
        assert_eq!(shown(vec![call("x", "{}")], Ending::Cut), ["x a.b "]);
        assert_eq!(shown(vec![call("x", r#"{"a":1}"#)], Ending::Cut), [r#"x a.b {"a":1}"#]);
    }

    #[test]
    fn argument_fields_of_any_kind_keep_their_text() {
        let text = |json: &str| arguments_text(Some(&RawValue::from_string(json.to_owned()).unwrap()));
        assert_eq!(text(r#""{\"n\": 1.10}""#), r#"{"n": 1.10}"#);
        assert_eq!(text(r#"{ "n":1.10 }"#), r#"{ "n":1.10 }"#);
        assert_eq!((text("null"), arguments_text(None)), (String::new(), String::new()));
    }
}
