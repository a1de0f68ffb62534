//! Content blocks, from pieces or whole.

use serde_json::{Map, Value, value::RawValue};

use super::wire::{Event, ExactBlock};
use crate::{
    bounded_json::{self, NODES_MAX},
    calls::{self, CallsError, WireCall},
    wire::PieceError,
};

/// Blocks of one answer: calls, and what thinking and text stand between them.
const BLOCKS_MAX: usize = 4 * harness_model::limits::CALLS_PER_TURN_MAX;

/// The blocks as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// Values in them.
    nodes: usize,
}

/// One block.
#[derive(Debug, Default)]
pub(super) struct Block {
    index: Option<u64>,
    /// All of it but the input of a tool.
    pub(super) fields: Map<String, Value>,
    /// The exact text of the input of a tool.
    input: String,
    /// A whole block as it came, when it is not a call.
    pub(super) raw: Option<Box<RawValue>>,
}

impl Blocks {
    /// Takes the beginning of a block and returns the text in it.
    pub(super) fn begin(&mut self, event: Event) -> Result<String, PieceError> {
        let (mut fields, input) = event.content_block.as_deref().map(parts).transpose()?.unwrap_or_default();
        self.count(&fields)?;
        fields.shift_remove("input");
        // Empty as a rule, and then the pieces say it.
        let input = if input.trim() == "{}" { String::new() } else { input };
        let index = event.index.as_ref().and_then(Value::as_u64);
        let block = Block { index, fields, input, raw: None };
        let text = block.text().to_owned();
        self.push(block)?;
        Ok(text)
    }

    /// Takes a piece of a block and returns the text in it.
    pub(super) fn add(&mut self, event: Event) -> Result<String, PieceError> {
        let mut delta = event.delta.unwrap_or_default();
        let index = event.index.as_ref().and_then(Value::as_u64);
        let kind = delta.shift_remove("type");
        let at = match index {
            Some(_) => self.blocks.iter().rposition(|block| block.index == index),
            None => self.blocks.len().checked_sub(1),
        };
        // A piece of a block that never began: text is taken for text, the rest has no meaning.
        let at = match at {
            Some(at) => at,
            None if delta.contains_key("text") => {
                let fields = Map::from_iter([("type".to_owned(), "text".into())]);
                self.push(Block { index, fields, ..Block::default() })?;
                self.blocks.len() - 1
            }
            None => return Ok(String::new()),
        };
        let block = &mut self.blocks[at];
        self.nodes += block.nodes_more(&delta);
        if self.nodes > NODES_MAX {
            return Err(PieceError::TooMuch);
        }
        match kind.as_ref().and_then(Value::as_str) {
            Some("input_json_delta") => {
                block.input.push_str(delta.get("partial_json").and_then(Value::as_str).unwrap_or_default());
                calls::check_arguments(&block.input)?;
                return Ok(String::new());
            }
            Some("citations_delta") => block.add_to_list("citations", delta.remove("citation")),
            _ => {}
        }
        let text = delta.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        block.grow(delta);
        Ok(if block.is("text") { text } else { String::new() })
    }

    /// Takes a whole block.
    pub(super) fn push_whole(&mut self, raw: Box<RawValue>) -> Result<(), PieceError> {
        let (mut fields, input) = parts(&raw)?;
        self.count(&fields)?;
        let is_call = fields.get("type").is_some_and(|kind| kind == "tool_use");
        if is_call {
            fields.shift_remove("input");
        }
        self.push(Block { index: None, fields, input, raw: (!is_call).then_some(raw) })
    }

    /// The blocks in the order in which they began.
    pub(super) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    fn push(&mut self, block: Block) -> Result<(), PieceError> {
        if self.blocks.len() >= BLOCKS_MAX {
            return Err(CallsError::TooMany.into());
        }
        self.blocks.push(block);
        let calls = self.blocks.iter().filter(|block| block.is("tool_use")).count();
        Ok(calls::check_count(calls)?)
    }

    fn count(&mut self, fields: &Map<String, Value>) -> Result<(), PieceError> {
        self.nodes += bounded_json::nodes_of(fields);
        if self.nodes > NODES_MAX { Err(PieceError::TooMuch) } else { Ok(()) }
    }
}

/// The fields of a block, and the exact text of its input.
fn parts(raw: &RawValue) -> Result<(Map<String, Value>, String), PieceError> {
    let fields = serde_json::from_str(raw.get()).map_err(|_| PieceError::Unparseable)?;
    let exact: ExactBlock = serde_json::from_str(raw.get()).map_err(|_| PieceError::Unparseable)?;
    let input = calls::arguments_text(exact.input.as_deref());
    calls::check_arguments(&input)?;
    Ok((fields, input))
}

impl Block {
    /// Whether it is of this kind.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.fields.get("type").is_some_and(|found| found == kind)
    }

    /// Its text, if it is text.
    pub(super) fn text(&self) -> &str {
        let text = self.fields.get("text").and_then(Value::as_str).filter(|_| self.is("text"));
        text.unwrap_or_default()
    }

    /// The call it asks for.
    pub(super) fn call(&self) -> Option<WireCall> {
        let field = |name: &str| self.fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.is("tool_use").then(|| WireCall {
            id: field("id"),
            name: field("name"),
            arguments: self.input.clone(),
        })
    }

    /// Whether it is no more than its text or its call.
    pub(super) fn is_plain(&self) -> bool {
        let known: &[&str] = if self.is("text") {
            &["type", "text"]
        } else if self.is("tool_use") {
            &["type", "id", "name"]
        } else {
            return false;
        };
        self.fields.iter().all(|(key, value)| known.contains(&key.as_str()) || value.is_null())
    }

    /// All of it; the input of a call stands in the call.
    pub(super) fn into_kept(self) -> Value {
        if let Some(raw) = &self.raw {
            return crate::verbatim::kept(raw);
        }
        let mut fields = self.fields;
        let is_call = fields.get("type").is_some_and(|kind| kind == "tool_use");
        if !is_call && !self.input.is_empty() {
            // The input of a tool that the provider runs itself.
            let input = bounded_json::parse(self.input.as_bytes()).unwrap_or(Value::String(self.input));
            fields.insert("input".to_owned(), input);
        }
        Value::Object(fields)
    }

    /// How many values a piece adds; most are one string that grows another.
    fn nodes_more(&self, delta: &Map<String, Value>) -> usize {
        let adds = |(key, value): &(&String, &Value)| !value.is_string() || !self.fields.contains_key(*key);
        delta.iter().filter(adds).map(|(_, value)| bounded_json::nodes_of_value(value)).sum()
    }

    /// Strings grow, lists too, everything else is replaced: the rule that all known pieces follow.
    fn grow(&mut self, delta: Map<String, Value>) {
        for (key, value) in delta {
            match (self.fields.get_mut(&key), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
                (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
                (_, value) => drop(self.fields.insert(key, value)),
            }
        }
    }

    fn add_to_list(&mut self, name: &str, item: Option<Value>) {
        let Some(item) = item else { return };
        match self.fields.get_mut(name) {
            Some(Value::Array(items)) => items.push(item),
            _ => drop(self.fields.insert(name.to_owned(), Value::Array(vec![item]))),
        }
    }
}
