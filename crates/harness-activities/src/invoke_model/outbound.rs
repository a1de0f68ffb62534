//! The border to the model: no secret passes, wherever it was picked up.

use harness_model::{ItemPart, Redactor};
use harness_ports::InputItem;

/// The items with every secret masked. Answers of the model were scrubbed when they were kept; they stay as they are so
/// that the provider's own items are repeated byte for byte.
pub(super) fn redacted(items: Vec<InputItem>, redactor: &Redactor) -> Vec<InputItem> {
    let mut items = items;
    for item in &mut items {
        match item {
            InputItem::User { parts } | InputItem::ToolResult { parts, .. } => {
                parts.iter_mut().for_each(|part| redact(part, redactor));
            }
            InputItem::Model(_) => {}
        }
    }
    items
}

fn redact(part: &mut ItemPart, redactor: &Redactor) {
    match part {
        ItemPart::Text(text) => *text = redactor.text(text),
        ItemPart::Data(value) => redactor.value(value),
        ItemPart::Link { uri, .. } => *uri = redactor.text(uri),
        ItemPart::Binary { .. } => {}
    }
}
