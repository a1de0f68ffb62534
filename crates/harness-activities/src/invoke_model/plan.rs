//! What is to be done about the calls of an answer: each is checked against the registry before anything runs.

use harness_agent::{
    CallAction, PlannedCall,
    intrinsics::{self, Spill},
};
use harness_model::{
    CodedError, ErrorCode, Redactor, RequestedCall, clean_field, codes, limits, parse_json_bounded,
    truncate_chars,
};
use serde_json::{Map, Value};

use super::summary;
use crate::{blocks::Keep, registry::ToolRegistry};

/// Characters of a name that is not a tool's.
const UNKNOWN_NAME_CHARS_MAX: usize = 64;
/// Characters of the reason of a refusal.
const REASON_CHARS_MAX: usize = 800;

/// Plans the calls, in order. What they refer to is kept.
pub(super) fn plan(
    calls: &[RequestedCall],
    registry: &ToolRegistry,
    redactor: &Redactor,
    keep: &mut Keep,
) -> Vec<PlannedCall> {
    let planned = |(index, call)| plan_call(index, call, registry, redactor, keep);
    calls.iter().enumerate().map(planned).collect()
}

fn plan_call(
    index: usize,
    call: &RequestedCall,
    registry: &ToolRegistry,
    redactor: &Redactor,
    keep: &mut Keep,
) -> PlannedCall {
    let known = registry.find(&call.name);
    let name = known.map_or_else(
        || clean_field(&redactor.text(&call.name), Some(UNKNOWN_NAME_CHARS_MAX)).text,
        |tool| tool.name.clone(),
    );
    let planned =
        |summary, action| PlannedCall { call_id: call.call_id.clone(), name: name.clone(), summary, action };
    if index >= limits::CALLS_PER_TURN_MAX {
        let reason = format!("one answer may have {} calls; call again", limits::CALLS_PER_TURN_MAX);
        return planned(String::new(), refused(codes::TOOL_INVALID_ARGUMENTS, &reason));
    }
    let Some(tool) = known else {
        let reason = format!("there is no tool {name:?}; call one of the tools you were given");
        return planned(String::new(), refused(codes::TOOL_NOT_FOUND, &reason));
    };
    let arguments = match read_arguments(&call.arguments) {
        Ok(arguments) => arguments,
        Err(problem) => return planned(String::new(), invalid(&name, &problem)),
    };
    let summary = summary::of(&arguments, redactor);
    let value = Value::Object(arguments);
    if let Err(problem) = registry.validate(&tool.name, &value) {
        return planned(summary, invalid(&name, &problem));
    }
    let Value::Object(arguments) = value else { return planned(summary, invalid(&name, "not an object")) };
    if !intrinsics::is_intrinsic(&tool.name) {
        let arguments = keep.bytes(Value::Object(arguments).to_string());
        let (idempotent, read_only, deduplicates) = (tool.idempotent, tool.read_only, tool.deduplicates);
        return planned(summary, CallAction::Tool { arguments, idempotent, read_only, deduplicates });
    }
    let mut spill = Spill::default();
    match intrinsics::parse(&tool.name, &arguments, &mut spill) {
        Ok(request) => {
            spill.into_blocks().into_iter().for_each(|block| keep.block(block));
            planned(summary, CallAction::Intrinsic(request))
        }
        Err(problem) => planned(summary, invalid(&name, &problem)),
    }
}

/// The argument text as an object. No text at all is no arguments: several servers write it so.
/// Errors: what is wrong, for the model.
fn read_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > limits::CALL_ARGUMENTS_BYTES_MAX {
        let max = limits::CALL_ARGUMENTS_BYTES_MAX;
        return Err(format!("they have {} bytes and may have {max}", text.len()));
    }
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match parse_json_bounded(text.as_bytes(), limits::JSON_DEPTH_MAX) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("they must be a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn invalid(name: &str, problem: &str) -> CallAction {
    refused(codes::TOOL_INVALID_ARGUMENTS, &format!("the arguments of {name} are not valid: {problem}"))
}

fn refused(code: ErrorCode, reason: &str) -> CallAction {
    CallAction::Refused(CodedError::new(code, truncate_chars(reason, REASON_CHARS_MAX)))
}
