//! A tool result as the model reads it: scrubbed, bounded, nothing dropped in silence. Pure.

use harness_agent::InvokeToolInput;
use harness_model::{CallId, ItemPart, Redactor, TaskId, clean_field, limits, truncate_chars};
use harness_ports::{ActivityFailure, ToolOutput, ToolPart};
use serde_json::Value;

use super::{
    kept::{self, KeptResult},
    preview,
};
use crate::blocks::Keep;

/// Parts that are shown one by one; texts of a result with more are put together.
const PARTS_MAX: usize = 64;
/// Images and other bytes of one result.
const BINARIES_MAX: usize = 64;
/// Characters of a media type.
const MEDIA_TYPE_CHARS_MAX: usize = 100;
/// Characters of a link.
const URI_CHARS_MAX: usize = 2_048;

/// Where a result comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    task_id: TaskId,
    tool: String,
    call_id: CallId,
    turn: u32,
    idempotency_key: String,
}

impl Origin {
    pub(super) fn of(input: &InvokeToolInput) -> Self {
        Self {
            task_id: input.task_id.clone(),
            tool: input.name.clone(),
            call_id: input.call_id.clone(),
            turn: input.turn,
            idempotency_key: input.idempotency_key.clone(),
        }
    }
}

/// A result for the model, and what is kept of it.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) parts: Vec<ItemPart>,
    pub(super) keep: Keep,
}

/// Bytes of the content, near enough; found without writing it out.
pub(super) fn bytes(output: &ToolOutput) -> usize {
    let part_bytes = |part: &ToolPart| match part {
        ToolPart::Text(text) => text.len(),
        ToolPart::Data(value) => value_bytes(value),
        ToolPart::Binary { bytes, .. } => bytes.len(),
        ToolPart::Link { uri, .. } => uri.len(),
    };
    output.parts.iter().map(part_bytes).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum(),
        Value::Object(fields) => fields.iter().map(|(key, item)| key.len() + value_bytes(item) + 4).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

pub(super) fn render(
    output: ToolOutput,
    origin: &Origin,
    redactor: &Redactor,
    mut keep: Keep,
) -> Result<Rendered, ActivityFailure> {
    let truncated = output.truncated;
    let mut parts = scrubbed(output.parts, redactor, &mut keep);
    if parts.is_empty() {
        parts.push(ItemPart::Text("(the tool returned nothing)".to_owned()));
    }
    if parts.iter().filter(|part| has_words(part)).count() > PARTS_MAX {
        parts = put_together(parts);
    }
    let mut shelf = Shelf { origin, keep, number: 0 };
    for index in too_large(&parts) {
        if let Some(part) = parts.get_mut(index) {
            *part = ItemPart::Text(shelf.put(&words(part))?);
        }
    }
    if word_bytes(&parts) > limits::TOOL_RESULT_INLINE_BYTES_MAX {
        // Many parts of middling size: one text, one preview.
        parts = put_together(parts);
        for part in parts.iter_mut().filter(|part| has_words(part)) {
            *part = ItemPart::Text(shelf.put(&words(part))?);
        }
    }
    if truncated {
        let max = limits::TOOL_RESULT_BYTES_MAX;
        let note = format!("[The tool returned more than {max} bytes; what came after that was dropped.]");
        parts.insert(0, ItemPart::Text(note));
    }
    Ok(Rendered { parts, keep: shelf.keep })
}

/// The parts without secrets; bytes are kept as blocks.
fn scrubbed(parts: Vec<ToolPart>, redactor: &Redactor, keep: &mut Keep) -> Vec<ItemPart> {
    let (mut rendered, mut binaries) = (Vec::with_capacity(parts.len()), 0_usize);
    let media = |name: &str| clean_field(name, Some(MEDIA_TYPE_CHARS_MAX)).text;
    for part in parts {
        rendered.push(match part {
            ToolPart::Text(text) => ItemPart::Text(redactor.text(&text)),
            ToolPart::Data(mut value) => {
                redactor.value(&mut value);
                ItemPart::Data(value)
            }
            ToolPart::Link { uri, media_type } => ItemPart::Link {
                uri: truncate_chars(&redactor.text(&uri), URI_CHARS_MAX),
                media_type: media_type.as_deref().map(media),
            },
            ToolPart::Binary { media_type, bytes } => {
                binaries += 1;
                if binaries > BINARIES_MAX {
                    continue;
                }
                ItemPart::Binary { media_type: media(&media_type), block: keep.bytes(bytes) }
            }
        });
    }
    if binaries > BINARIES_MAX {
        let more = binaries - BINARIES_MAX;
        rendered.push(ItemPart::Text(format!(
            "[{more} more images or files were dropped; ask the tool for fewer]"
        )));
    }
    rendered
}

/// The parts to replace by previews so that the rest fits: the largest first, and none that a preview would not shrink.
fn too_large(parts: &[ItemPart]) -> Vec<usize> {
    let mut total = word_bytes(parts);
    let mut sizes: Vec<(usize, usize)> = parts.iter().map(part_bytes).enumerate().collect();
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut chosen = Vec::new();
    for (index, bytes) in sizes {
        if total <= limits::TOOL_RESULT_INLINE_BYTES_MAX || bytes <= limits::TOOL_RESULT_PREVIEW_BYTES {
            break;
        }
        total -= bytes - limits::TOOL_RESULT_PREVIEW_BYTES;
        chosen.push(index);
    }
    // Previews of parts that do not fit even so would be kept twice.
    if total > limits::TOOL_RESULT_INLINE_BYTES_MAX { Vec::new() } else { sorted(chosen) }
}

fn sorted(mut indexes: Vec<usize>) -> Vec<usize> {
    indexes.sort_unstable();
    indexes
}

/// All words as one text where the first of them were; other parts stay.
fn put_together(parts: Vec<ItemPart>) -> Vec<ItemPart> {
    let text = parts.iter().filter(|part| has_words(part)).map(words).collect::<Vec<_>>().join("\n");
    let first = parts.iter().position(has_words).unwrap_or(0);
    let mut rest: Vec<ItemPart> = parts.into_iter().filter(|part| !has_words(part)).collect();
    rest.insert(first.min(rest.len()), ItemPart::Text(text));
    rest
}

fn has_words(part: &ItemPart) -> bool {
    match part {
        ItemPart::Text(_) | ItemPart::Data(_) | ItemPart::Link { .. } => true,
        ItemPart::Binary { .. } => false,
    }
}

/// A part as text. Data gets lines, so that its preview and a search in it show something.
fn words(part: &ItemPart) -> String {
    match part {
        ItemPart::Text(text) => text.clone(),
        ItemPart::Data(value) => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
        ItemPart::Link { uri, .. } => uri.clone(),
        ItemPart::Binary { .. } => String::new(),
    }
}

fn word_bytes(parts: &[ItemPart]) -> usize {
    parts.iter().map(part_bytes).sum()
}

fn part_bytes(part: &ItemPart) -> usize {
    match part {
        ItemPart::Text(text) => text.len(),
        ItemPart::Data(value) => value.to_string().len(),
        ItemPart::Link { uri, .. } => uri.len(),
        ItemPart::Binary { .. } => 0,
    }
}

/// Keeps texts behind handles.
struct Shelf<'a> {
    origin: &'a Origin,
    keep: Keep,
    number: usize,
}

impl Shelf<'_> {
    /// Keeps a text and returns its preview.
    fn put(&mut self, text: &str) -> Result<String, ActivityFailure> {
        let handle = kept::handle(&self.origin.idempotency_key, self.number);
        self.number += 1;
        let lines = preview::lines(text);
        let preview = preview::of(text, lines, &handle);
        let block = self.keep.bytes(text.to_owned());
        let kept =
            KeptResult::new(handle, &self.origin.tool, &self.origin.call_id, self.origin.turn, block, lines);
        self.keep.record(kept.record(&self.origin.task_id)?);
        Ok(preview)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(parts: Vec<ToolPart>) -> Vec<ItemPart> {
        let origin = Origin {
            task_id: "t".into(),
            tool: "shop/orders.get".to_owned(),
            call_id: "c".into(),
            turn: 1,
            idempotency_key: "t/1/0".to_owned(),
        };
        let output = ToolOutput { is_error: false, parts, truncated: false };
        render(output, &origin, &Redactor::default(), Keep::of(&"task".into())).unwrap().parts
    }

    fn text(bytes: usize) -> ToolPart {
        ToolPart::Text("x".repeat(bytes))
    }

    #[test]
    fn small_results_are_shown_as_they_are() {
        let parts = rendered(vec![text(65_000), ToolPart::Data(json!({"a": 1}))]);
        assert_eq!(parts[0], ItemPart::Text("x".repeat(65_000)));
        assert_eq!(parts[1], ItemPart::Data(json!({"a": 1})));
        assert_eq!(rendered(Vec::new()), [ItemPart::Text("(the tool returned nothing)".to_owned())]);
    }

    #[test]
    fn only_the_part_that_is_too_large_is_replaced() {
        let parts = rendered(vec![ToolPart::Text("found 2".to_owned()), text(65_537), text(1_000)]);
        assert_eq!(parts[0], ItemPart::Text("found 2".to_owned()));
        assert!(matches!(&parts[1], ItemPart::Text(t) if t.starts_with("[Too large")));
        assert_eq!(parts[2], ItemPart::Text("x".repeat(1_000)));
    }

    #[test]
    fn many_parts_become_one() {
        for parts in [vec![text(8_000); 60], vec![text(30); 5_000], vec![text(60_000); 40]] {
            let shown = rendered(parts);
            assert!(shown.len() == 1 && word_bytes(&shown) <= limits::TOOL_RESULT_INLINE_BYTES_MAX);
        }
    }

    #[test]
    fn bytes_stay_where_they_were() {
        let image = || ToolPart::Binary { media_type: "image/png".to_owned(), bytes: vec![1, 2].into() };
        let parts = rendered(vec![image(), text(70_000), image()]);
        assert!(matches!(parts[0], ItemPart::Binary { .. }));
        assert!(matches!(parts[1], ItemPart::Text(_)));
        assert!(matches!(parts[2], ItemPart::Binary { .. }));
        let many = rendered((0..70).map(|_| image()).collect());
        assert_eq!(many.len(), BINARIES_MAX + 1);
        assert!(matches!(many.last(), Some(ItemPart::Text(t)) if t.starts_with("[6 more")));
    }
}
