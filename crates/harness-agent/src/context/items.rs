//! Conversation items as the model reads them.

use harness_model::{CallId, ItemPart, ModelOutput, Source, StoredItem, fence_untrusted};
use harness_ports::InputItem;

/// Renders items and keeps the rule of every wire: each call of an answer has exactly one result, right after it.
pub(super) fn render(items: &[StoredItem]) -> Vec<InputItem> {
    let mut input = Vec::with_capacity(items.len());
    let mut open: Vec<(CallId, String)> = Vec::new();
    for item in items {
        match item {
            StoredItem::User { parts, source } => {
                close(&mut open, &mut input);
                input.push(InputItem::User { parts: fenced(parts, *source) });
            }
            StoredItem::Model(output) => {
                close(&mut open, &mut input);
                open = calls(output);
                input.push(InputItem::Model(output.clone()));
            }
            StoredItem::ToolResult { call_id, name, is_error, parts } => {
                // A result whose call is not open would be refused by every provider.
                let Some(position) = open.iter().position(|(id, _)| id == call_id) else { continue };
                open.remove(position);
                input.push(InputItem::ToolResult {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    is_error: *is_error,
                    parts: fenced(parts, Some(Source::Tool)),
                });
            }
        }
    }
    close(&mut open, &mut input);
    input
}

/// Answers calls that have no result: an answer was cut off before its calls could run.
fn close(open: &mut Vec<(CallId, String)>, input: &mut Vec<InputItem>) {
    for (call_id, name) in open.drain(..) {
        input.push(InputItem::ToolResult {
            call_id,
            name,
            is_error: true,
            parts: vec![ItemPart::Text("[tool.interrupted] the call was not run".to_owned())],
        });
    }
}

fn calls(output: &ModelOutput) -> Vec<(CallId, String)> {
    output.calls.iter().map(|call| (call.call_id.clone(), call.name.clone())).collect()
}

/// Text is fenced when it comes from outside. Data is not: as JSON it is told apart anyway, and a fence would break it.
fn fenced(parts: &[ItemPart], source: Option<Source>) -> Vec<ItemPart> {
    let Some(source) = source else { return parts.to_vec() };
    parts
        .iter()
        .map(|part| match part {
            ItemPart::Text(text) => ItemPart::Text(fence_untrusted(text, source)),
            ItemPart::Data(_) | ItemPart::Binary { .. } | ItemPart::Link { .. } => part.clone(),
        })
        .collect()
}
