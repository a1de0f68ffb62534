//! What all wires ask of a conversation, and how its parts read as text.

use std::collections::HashSet;

use harness_model::{CallId, ItemPart, ModelOutput};
use harness_ports::{InputItem, ToolDefinition};

use crate::tool_names::ToolNames;

/// Why a request cannot be put into a wire's terms. The texts are ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodeError {
    #[error("the model {0:?} is not one of the models this provider may be asked for")]
    UnknownModel(String),
    #[error("the conversation has two calls {0} in one answer")]
    RepeatedCall(CallId),
    #[error("the conversation has a result for {0}, which no open call asked for")]
    UnexpectedResult(CallId),
    #[error("the conversation has no result for the call {0}")]
    MissingResult(CallId),
    #[error("a thinking budget of {budget} tokens leaves no room for an answer of {max} tokens at most")]
    ThinkingBudget { budget: u32, max: u32 },
}

/// Checks that the results of an answer's calls follow it directly, one for each.
pub(crate) fn check_results(input: &[InputItem]) -> Result<(), EncodeError> {
    let mut open: Vec<&CallId> = Vec::new();
    for item in input {
        match item {
            InputItem::ToolResult { call_id, .. } => {
                let at = open.iter().position(|open| *open == call_id);
                open.swap_remove(at.ok_or_else(|| EncodeError::UnexpectedResult(call_id.clone()))?);
            }
            InputItem::User { .. } | InputItem::Model(_) => all_answered(&open)?,
        }
        if let InputItem::Model(output) = item {
            let mut seen = HashSet::new();
            for call in &output.calls {
                if !seen.insert(&call.call_id) {
                    return Err(EncodeError::RepeatedCall(call.call_id.clone()));
                }
                open.push(&call.call_id);
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &[&CallId]) -> Result<(), EncodeError> {
    open.first().map_or(Ok(()), |call_id| Err(EncodeError::MissingResult((*call_id).clone())))
}

/// The words of an earlier answer: its text, else those of its refusal.
pub(crate) fn words_of(output: &ModelOutput) -> &str {
    if output.text.is_empty() { output.refusal.as_deref().unwrap_or_default() } else { &output.text }
}

/// The description of a tool. The conversation speaks of registry names; the model has to know that they are the same
/// tool.
pub(crate) fn description(tool: &ToolDefinition, names: &ToolNames) -> String {
    if names.wire(&tool.name) == tool.name {
        tool.description.clone()
    } else {
        format!("{} (registry name: {})", tool.description, tool.name)
    }
}

/// The text of a failed tool result; a failure is never silent.
pub(crate) fn failure_text(parts: &[ItemPart]) -> String {
    let text = text_of(parts);
    if text.is_empty() { "The call failed without a word.".to_owned() } else { text }
}

/// Parts as text, one a line. Bytes are not sent; what cannot be shown is named.
pub(crate) fn text_of(parts: &[ItemPart]) -> String {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            ItemPart::Text(text) => text.clone(),
            ItemPart::Data(value) => {
                let mut value = value.clone();
                value.sort_all_objects();
                value.to_string()
            }
            ItemPart::Binary { media_type, block } => {
                format!("[{media_type}, {} bytes, not shown]", block.bytes)
            }
            ItemPart::Link { uri, media_type: Some(media_type) } => format!("[{uri} ({media_type})]"),
            ItemPart::Link { uri, media_type: None } => format!("[{uri}]"),
        })
        .collect();
    texts.join("\n")
}
