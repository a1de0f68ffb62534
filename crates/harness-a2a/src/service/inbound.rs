//! A message on its way in: checked, turned into the stored form, scrubbed.

use std::collections::HashMap;

use a2a::PartContent;
use harness_model::{ContextId, Message, MessageId, Part, PartBody, Redactor, Role, TaskId, limits};
use harness_ports::Block;
use serde_json::{Map, Value};

use crate::{A2aError, ErrorKind, card::INPUT_MODES};

/// A message as it will be stored, and the blocks of its raw parts.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) message: Message,
    pub(super) raw: Vec<Block>,
}

impl Inbound {
    /// Takes a message from the wire.
    /// Errors: `InvalidParams` for what the shape alone does not say, `ContentTypeNotSupported`.
    pub(super) fn accept(wire: a2a::Message, redactor: &Redactor) -> Result<Self, A2aError> {
        check_id("message.messageId", &wire.message_id)?;
        for (field, id) in [("message.contextId", &wire.context_id), ("message.taskId", &wire.task_id)] {
            if let Some(id) = id.as_deref().filter(|id| !id.is_empty()) {
                check_id(field, id)?;
            }
        }
        if wire.role != a2a::Role::User {
            return Err(A2aError::invalid_field("message.role", "message.role must be ROLE_USER"));
        }
        let references = wire.reference_task_ids.unwrap_or_default();
        let extensions = wire.extensions.unwrap_or_default();
        if references.len().max(extensions.len()) > limits::MESSAGE_PARTS_MAX {
            return Err(A2aError::invalid_field("message", "too many extensions or referenceTaskIds"));
        }
        let mut raw = Vec::new();
        let mut parts = Vec::with_capacity(wire.parts.len());
        for part in wire.parts {
            parts.push(accept_part(part, redactor, &mut raw)?);
        }
        let message = Message {
            message_id: MessageId::from(wire.message_id),
            context_id: wire.context_id.filter(|id| !id.is_empty()).map(ContextId::from),
            task_id: wire.task_id.filter(|id| !id.is_empty()).map(TaskId::from),
            role: Role::User,
            parts,
            metadata: scrubbed_map(wire.metadata, redactor),
            extensions: extensions.iter().map(|uri| redactor.text(uri)).collect(),
            reference_task_ids: references.into_iter().map(TaskId::from).collect(),
        };
        Ok(Self { message, raw })
    }

    /// The message as a block, and every block it refers to.
    pub(super) fn into_blocks(self) -> Result<(Block, Vec<Block>), A2aError> {
        let block = Block::new(serde_json::to_vec(&self.message).map_err(A2aError::internal)?);
        let mut blocks = self.raw;
        blocks.push(block.clone());
        Ok((block, blocks))
    }
}

fn accept_part(part: a2a::Part, redactor: &Redactor, raw: &mut Vec<Block>) -> Result<Part, A2aError> {
    // Writers that spell out default values send empty texts for what is not there.
    let media_type = part.media_type.as_deref().filter(|text| !text.is_empty());
    let media_type = media_type.map(accepted_media_type).transpose()?;
    let filename = part.filename.filter(|name| !name.is_empty());
    let body = match part.content {
        PartContent::Text(text) => PartBody::Text(redactor.text(&text)),
        PartContent::Data(mut value) => {
            redactor.value(&mut value);
            PartBody::Data(value)
        }
        PartContent::Url(url) => PartBody::Url(redactor.text(&url)),
        PartContent::Raw(bytes) => {
            let block = Block::new(bytes);
            let body = PartBody::Raw(block.reference.clone());
            raw.push(block);
            body
        }
    };
    Ok(Part {
        body,
        media_type,
        filename: filename.map(|name| redactor.text(&name)),
        metadata: scrubbed_map(part.metadata, redactor),
    })
}

/// The type without its parameters, in lower case, if the card declares it.
fn accepted_media_type(media_type: &str) -> Result<String, A2aError> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if INPUT_MODES.contains(&essence.as_str()) {
        return Ok(essence);
    }
    let message = format!("the agent takes parts of these media types: {}", INPUT_MODES.join(", "));
    Err(A2aError::new(ErrorKind::ContentTypeNotSupported, message))
}

/// Checks an identifier that a client chose.
pub(super) fn check_id(field: &str, id: &str) -> Result<(), A2aError> {
    if id.is_empty() || id.len() > limits::ID_CHARS_MAX || id.chars().any(char::is_control) {
        let text = format!("{field} must have 1 to {} bytes and no control characters", limits::ID_CHARS_MAX);
        return Err(A2aError::invalid_field(field, text));
    }
    Ok(())
}

fn scrubbed_map(map: Option<HashMap<String, Value>>, redactor: &Redactor) -> Map<String, Value> {
    let mut pairs: Vec<(String, Value)> = map.unwrap_or_default().into_iter().collect();
    // The wire type has lost the sender's order; a fixed one keeps equal messages equal blocks.
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, value) in &mut pairs {
        redactor.value(value);
    }
    pairs.into_iter().collect()
}
