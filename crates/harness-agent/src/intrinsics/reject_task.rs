//! `reject_task`: refuses a task before anything has happened.

use serde_json::{Map, Value, json};

use super::{IntrinsicRequest, Spill, StateTool, capped, object, text_argument};

pub(super) const TOOL: StateTool = StateTool {
    name: "reject_task",
    description: "Refuse this task, with a reason for whoever asked. Possible only while no tool has acted for it.",
    schema,
    idempotent: true,
    parse,
};

fn schema() -> Value {
    object(json!({"reason": {"type": "string", "minLength": 1}}), &["reason"])
}

fn parse(arguments: &Map<String, Value>, spill: &mut Spill) -> Result<IntrinsicRequest, String> {
    let reason = capped("reason", text_argument(arguments, "reason"))?;
    Ok(IntrinsicRequest::RejectTask { reason: spill.text(&reason) })
}
