//! `complete_step`: marks a step of the plan as done.

use serde_json::{Map, Value, json};

use super::{IntrinsicRequest, Spill, StateTool, capped, object, text_argument};

pub(super) const TOOL: StateTool = StateTool {
    name: "complete_step",
    description: "Mark a step of the plan as done and record in one or two sentences what it produced.",
    schema,
    idempotent: true,
    parse,
};

fn schema() -> Value {
    object(
        json!({
            "step": {"type": "string", "minLength": 1, "description": "Name or id of the step."},
            "output": {"type": "string", "description": "What the step produced."},
        }),
        &["step", "output"],
    )
}

fn parse(arguments: &Map<String, Value>, _spill: &mut Spill) -> Result<IntrinsicRequest, String> {
    Ok(IntrinsicRequest::CompleteStep {
        step: capped("step", text_argument(arguments, "step"))?,
        output: capped("output", text_argument(arguments, "output"))?,
    })
}
