//! `create_plan`: replaces the plan of the task.

use harness_model::NewStep;
use serde_json::{Map, Value, json};

use super::{IntrinsicRequest, Spill, StateTool, capped, object, text_argument, text_list};

pub(super) const TOOL: StateTool = StateTool {
    name: "create_plan",
    description: "Attach a plan to this task, replacing the one there is. Give each step a short name of its own; \
                  `depends_on` lists names of steps that must come first. Plan before you act.",
    schema,
    idempotent: true,
    parse,
};

fn schema() -> Value {
    let step = object(
        json!({
            "name": {"type": "string", "minLength": 1, "description": "Short title, unique in the plan."},
            "description": {"type": "string", "description": "What is to be done."},
            "depends_on": {"type": "array", "items": {"type": "string"}, "description": "Names of steps that come first."},
        }),
        &["name"],
    );
    object(json!({"steps": {"type": "array", "minItems": 1, "items": step}}), &["steps"])
}

fn parse(arguments: &Map<String, Value>, _spill: &mut Spill) -> Result<IntrinsicRequest, String> {
    let items = arguments.get("steps").and_then(Value::as_array);
    let steps =
        items.into_iter().flatten().filter_map(Value::as_object).map(step).collect::<Result<_, _>>()?;
    Ok(IntrinsicRequest::CreatePlan { steps })
}

fn step(fields: &Map<String, Value>) -> Result<NewStep, String> {
    Ok(NewStep {
        name: capped("a step's name", text_argument(fields, "name"))?,
        description: capped("a step's description", text_argument(fields, "description"))?,
        depends_on: text_list(fields, "depends_on"),
    })
}
