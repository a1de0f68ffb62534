//! Tools that the harness brings and that need a look outside of the task: skills and kept results.

use harness_model::limits;
use harness_ports::ToolDefinition;
use serde_json::{Value, json};

use super::object;

/// Lists the skills.
pub const LIST_SKILLS: &str = "list_skills";
/// Loads a skill into the context.
pub const LOAD_SKILL: &str = "load_skill";
/// Removes a skill from the context.
pub const UNLOAD_SKILL: &str = "unload_skill";
/// Lists the files of a skill.
pub const LIST_SKILL_RESOURCES: &str = "list_skill_resources";
/// Reads a file of a skill.
pub const LOAD_SKILL_RESOURCE: &str = "load_skill_resource";
/// Reads a kept tool result.
pub const READ_RESULT: &str = "read_result";

pub(super) fn definitions() -> Vec<ToolDefinition> {
    let name = || json!({"name": {"type": "string", "minLength": 1, "description": "Name of the skill."}});
    vec![
        tool(LIST_SKILLS, "List the skills there are, with what each is for.", object(json!({}), &[])),
        tool(
            LOAD_SKILL,
            "Load a skill: its instructions stay in your context until you unload it. Load one before work it covers.",
            object(name(), &["name"]),
        ),
        tool(UNLOAD_SKILL, "Remove a loaded skill from your context.", object(name(), &["name"])),
        tool(LIST_SKILL_RESOURCES, "List the files that belong to a skill.", object(name(), &["name"])),
        tool(
            LOAD_SKILL_RESOURCE,
            "Read one text file of a skill.",
            object(
                json!({
                    "name": {"type": "string", "minLength": 1, "description": "Name of the skill."},
                    "kind": {"enum": ["scripts", "references", "assets"]},
                    "resource": {"type": "string", "minLength": 1, "description": "File name."},
                }),
                &["name", "kind", "resource"],
            ),
        ),
        tool(
            READ_RESULT,
            "Read part of a tool result that was too large to show whole: by `offset` and `length` in bytes, or by \
             `search` for the lines around a text.",
            object(
                json!({
                    "handle": {"type": "string", "minLength": 1, "description": "The handle in the preview."},
                    "offset": {"type": "integer", "minimum": 0},
                    "length": {"type": "integer", "minimum": 1, "maximum": limits::READ_RESULT_BYTES_MAX},
                    "search": {"type": "string", "minLength": 1},
                }),
                &["handle"],
            ),
        ),
    ]
}

fn tool(name: &str, description: &str, input_schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        idempotent: true,
        read_only: true,
        deduplicates: false,
    }
}
