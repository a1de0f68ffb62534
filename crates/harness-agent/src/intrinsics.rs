//! Intrinsic tools: what the model can do to its own task. One file per tool.
//!
//! A call is read twice: [`parse`] turns its validated arguments into a typed request while the model's answer is
//! recorded, and the task workflow decides what the request means in its state. Neither has an effect of its own.

mod ask_participant;
mod complete_step;
mod create_plan;
mod harness_tools;
mod publish_artifact;
mod reject_task;

use harness_model::{Content, ContentPart, NewStep, ParticipantId, limits};
use harness_ports::{Block, ToolDefinition};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use harness_tools::{
    LIST_SKILL_RESOURCES, LIST_SKILLS, LOAD_SKILL, LOAD_SKILL_RESOURCE, READ_RESULT, UNLOAD_SKILL,
};

/// What the model asks of its own task. Content is by reference; the rest are facts of the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "intrinsic")]
pub enum IntrinsicRequest {
    /// Replace the plan.
    #[serde(rename = "create_plan.v1")]
    CreatePlan {
        /// The steps.
        steps: Vec<NewStep>,
    },
    /// Mark a step as done.
    #[serde(rename = "complete_step.v1")]
    CompleteStep {
        /// Its name or id.
        step: String,
        /// What it produced.
        output: String,
    },
    /// Ask a participant and wait for the reply.
    #[serde(rename = "ask_participant.v1")]
    AskParticipant {
        /// Who.
        participant_id: ParticipantId,
        /// What.
        question: Content,
        /// Suggested answers.
        options: Vec<String>,
    },
    /// Publish an artifact.
    #[serde(rename = "publish_artifact.v1")]
    PublishArtifact {
        /// Its name.
        name: String,
        /// What it is.
        description: Option<String>,
        /// Its parts.
        parts: Vec<ContentPart>,
    },
    /// Refuse the task.
    #[serde(rename = "reject_task.v1")]
    RejectTask {
        /// Why, for the reporter.
        reason: Content,
    },
}

/// Blocks that a request refers to; kept together with the answer that holds the call.
#[derive(Debug, Default)]
pub struct Spill {
    blocks: Vec<Block>,
}

impl Spill {
    /// Keeps a text and returns its reference.
    pub fn text(&mut self, text: &str) -> Content {
        Content::Block(self.bytes(text.as_bytes().to_vec()))
    }

    /// Keeps bytes and returns their reference.
    pub fn bytes(&mut self, bytes: Vec<u8>) -> harness_model::BlockRef {
        let block = Block::new(bytes);
        let reference = block.reference.clone();
        self.blocks.push(block);
        reference
    }

    /// The blocks.
    pub fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }
}

/// Whether a tool of this name changes the task itself and is decided by the workflow.
pub fn is_intrinsic(name: &str) -> bool {
    STATE_TOOLS.iter().any(|tool| tool.name == name)
}

/// Definitions of every tool the harness brings itself, sorted by name: intrinsics, skill tools, `read_result`.
pub fn definitions() -> Vec<ToolDefinition> {
    let own = STATE_TOOLS.iter().map(|tool| ToolDefinition {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        input_schema: (tool.schema)(),
        idempotent: tool.idempotent,
        read_only: false,
        deduplicates: false,
    });
    let mut all: Vec<ToolDefinition> = own.chain(harness_tools::definitions()).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Reads the arguments of an intrinsic call. They match the tool's schema already.
/// Errors: a text for the model, when a rule beyond the schema does not hold.
pub fn parse(
    name: &str,
    arguments: &Map<String, Value>,
    spill: &mut Spill,
) -> Result<IntrinsicRequest, String> {
    match STATE_TOOLS.iter().find(|tool| tool.name == name) {
        Some(tool) => (tool.parse)(arguments, spill),
        None => Err(format!("{name} is not an intrinsic tool")),
    }
}

/// One intrinsic tool.
struct StateTool {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Value,
    idempotent: bool,
    parse: fn(&Map<String, Value>, &mut Spill) -> Result<IntrinsicRequest, String>,
}

const STATE_TOOLS: [&StateTool; 5] = [
    &ask_participant::TOOL,
    &complete_step::TOOL,
    &create_plan::TOOL,
    &publish_artifact::TOOL,
    &reject_task::TOOL,
];

/// A closed object schema with these properties.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn text_argument<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn text_list(arguments: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = arguments.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Refuses a text that is longer than a state may hold.
fn capped(field: &str, text: &str) -> Result<String, String> {
    let max = limits::STEP_TEXT_CHARS_MAX;
    if text.chars().count() > max {
        return Err(format!(
            "{field} has more than {max} characters; shorten it or publish it as an artifact"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use harness_model::ContentBody;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().expect("test arguments are objects").clone()
    }

    fn parsed(name: &str, value: Value) -> Result<IntrinsicRequest, String> {
        parse(name, &arguments(value), &mut Spill::default())
    }

    #[test]
    fn definitions_are_sorted_closed_and_unique() {
        let all = definitions();
        assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name));
        for tool in all {
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            assert!(!tool.description.is_empty());
        }
    }

    #[test]
    fn schemas_are_the_committed_ones() {
        let all: Vec<Value> = definitions()
            .into_iter()
            .map(
                |tool| json!({"name": tool.name, "idempotent": tool.idempotent, "schema": tool.input_schema}),
            )
            .collect();
        insta::assert_snapshot!(serde_json::to_string_pretty(&all).unwrap());
    }

    #[test]
    fn an_artifact_has_exactly_one_content_per_part() {
        let request = parsed(
            "publish_artifact",
            json!({"name": "report", "parts": [{"text": "hi"}, {"data": {"a": 1}}, {"file": {"name": "a.bin", "base64": "AAEC"}}, {"url": "https://x.example/a", "filename": "a.pdf"}]}),
        );
        let Ok(IntrinsicRequest::PublishArtifact { parts, .. }) = request else {
            panic!("{request:?}");
        };
        assert!(matches!(parts[0].body, ContentBody::Text(_)));
        assert!(matches!(parts[1].body, ContentBody::Data(_)));
        assert!(matches!(&parts[2].body, ContentBody::Raw(block) if block.bytes == 3));
        assert!(matches!(parts[3].body, ContentBody::Url(_)));
        let names = parts.iter().map(|part| part.filename.as_deref()).collect::<Vec<_>>();
        assert_eq!(names, [None, None, Some("a.bin"), Some("a.pdf")]);
        assert!(
            parsed("publish_artifact", json!({"name": "r", "parts": [{"text": "a", "url": "https://b"}]}))
                .is_err()
        );
        assert!(
            parsed(
                "publish_artifact",
                json!({"name": "r", "parts": [{"file": {"name": "x", "base64": "?"}}]})
            )
            .is_err()
        );
        assert!(
            parsed("publish_artifact", json!({"name": "r", "parts": [{"url": "javascript:alert(1)"}]}))
                .is_err()
        );
    }

    #[test]
    fn questions_and_outputs_are_bounded() {
        let long = "x".repeat(limits::QUESTION_CHARS_MAX + 1);
        assert!(
            parsed("ask_participant", json!({"participant_id": "a", "question": long, "options": []}))
                .is_err()
        );
        assert!(parsed("complete_step", json!({"step": "s", "output": long})).is_err());
        assert!(parsed("ask_participant", json!({"participant_id": "a", "question": "  "})).is_err());
    }
}
