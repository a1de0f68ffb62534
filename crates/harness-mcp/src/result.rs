//! From what a server answers to what the harness keeps: every part, in order, none twice.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use harness_model::{depth_at_most, limits};
use harness_ports::{ToolOutput, ToolPart};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::Value;

/// `_meta` key that the frame reader puts on a result it had to cut.
pub(crate) const CUT_KEY: &str = "io.github.madarauchiha-314.tiny-harness/cut";

/// Media type of bytes whose type the server does not say.
const UNKNOWN_MEDIA_TYPE: &str = "application/octet-stream";

/// A result as the harness keeps it. Its size is bounded by the transport that read it.
pub(crate) fn output_of(result: CallToolResult) -> ToolOutput {
    let mut parts = Vec::with_capacity(result.content.len() + 1);
    for block in result.content {
        push_block(&mut parts, block);
    }
    if let Some(structured) = result.structured_content {
        parts.retain(|part| !is_text_of(part, &structured));
        parts.insert(0, data(structured));
    }
    ToolOutput {
        is_error: result.is_error == Some(true),
        parts,
        truncated: result.meta.is_some_and(|meta| meta.contains_key(CUT_KEY)),
    }
}

/// A result whose shape the MCP library does not know, such as one with a new kind of content: the known blocks as
/// usual, the others as data.
pub(crate) fn output_of_unknown(result: &Value) -> Option<ToolOutput> {
    let mut parts = Vec::new();
    for block in result.get("content")?.as_array()? {
        match serde_json::from_value::<ContentBlock>(block.clone()) {
            Ok(block) => push_block(&mut parts, block),
            Err(_) => parts.push(data(block.clone())),
        }
    }
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    if let Some(structured) = result.get("structuredContent") {
        parts.push(data(structured.clone()));
    }
    Some(ToolOutput { is_error, parts, truncated: false })
}

/// The answer to a call whose frame was larger than `limits::TOOL_RESULT_BYTES_MAX`: its beginning, as it came.
pub(crate) fn cut_result(beginning: Vec<u8>) -> CallToolResult {
    let text = match String::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let mut meta = MetaObject::new();
    meta.insert(CUT_KEY.to_owned(), Value::Bool(true));
    CallToolResult::success(vec![ContentBlock::text(text)]).with_meta(Some(meta))
}

/// The answer to a call whose HTTP response was too large to be read at all.
pub(crate) fn dropped_output() -> ToolOutput {
    let text = format!(
        "The tool ran and answered with more than {} bytes; the answer was dropped.",
        limits::TOOL_RESULT_BYTES_MAX
    );
    ToolOutput { is_error: false, parts: vec![ToolPart::Text(text)], truncated: true }
}

fn push_block(parts: &mut Vec<ToolPart>, block: ContentBlock) {
    match block {
        ContentBlock::Text(text) => parts.push(ToolPart::Text(text.text)),
        ContentBlock::Image(image) => parts.push(binary(image.data, Some(image.mime_type))),
        ContentBlock::Audio(audio) => parts.push(binary(audio.data, Some(audio.mime_type))),
        ContentBlock::ResourceLink(link) => {
            parts.push(ToolPart::Link { uri: link.uri, media_type: link.mime_type });
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                parts.push(ToolPart::Link { uri, media_type: mime_type });
                parts.push(ToolPart::Text(text));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                parts.push(ToolPart::Link { uri, media_type: mime_type.clone() });
                parts.push(binary(blob, mime_type));
            }
            other => parts.push(unknown(&other)),
        },
        other => parts.push(unknown(&other)),
    }
}

/// A kind of content that came with a newer MCP library: kept as data.
fn unknown(block: &impl serde::Serialize) -> ToolPart {
    data(serde_json::to_value(block).unwrap_or(Value::Null))
}

/// Bytes in base64; text that is not base64 is kept as text rather than lost.
fn binary(encoded: String, media_type: Option<String>) -> ToolPart {
    match STANDARD.decode(&encoded) {
        Ok(bytes) => ToolPart::Binary {
            media_type: media_type.unwrap_or_else(|| UNKNOWN_MEDIA_TYPE.to_owned()),
            bytes: Bytes::from(bytes),
        },
        Err(_) => ToolPart::Text(encoded),
    }
}

/// A JSON value; one that is nested too deeply for the harness to read again is kept as text.
fn data(value: Value) -> ToolPart {
    let text = value.to_string();
    if depth_at_most(text.as_bytes(), limits::JSON_DEPTH_MAX) {
        ToolPart::Data(value)
    } else {
        ToolPart::Text(text)
    }
}

fn is_text_of(part: &ToolPart, value: &Value) -> bool {
    match part {
        ToolPart::Text(text) => serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *value),
        ToolPart::Data(_) | ToolPart::Binary { .. } | ToolPart::Link { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(result: Value) -> ToolOutput {
        output_of(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_part_is_kept() {
        let output = read(json!({"isError": true, "content": [
            {"type": "text", "text": "hi"},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "audio", "data": "not base64!", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/x", "text": "body"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAE="}},
        ]}));
        let link = |uri: &str, media_type: Option<&str>| ToolPart::Link {
            uri: uri.to_owned(),
            media_type: media_type.map(str::to_owned),
        };
        assert!(output.is_error && !output.truncated);
        assert_eq!(
            output.parts,
            [
                ToolPart::Text("hi".to_owned()),
                ToolPart::Binary {
                    media_type: "image/png".to_owned(),
                    bytes: Bytes::from_static(b"\x89PNG")
                },
                ToolPart::Text("not base64!".to_owned()),
                link("file:///a", Some("text/plain")),
                link("file:///b", Some("text/x")),
                ToolPart::Text("body".to_owned()),
                link("file:///c", None),
                ToolPart::Binary {
                    media_type: UNKNOWN_MEDIA_TYPE.to_owned(),
                    bytes: Bytes::from_static(&[0, 1])
                },
            ]
        );
    }

    #[test]
    fn structured_content_is_not_repeated_as_text() {
        let order = json!({"order_id": "48213", "price": 129.0});
        let same = read(json!({"structuredContent": order, "content": [
            {"type": "text", "text": "{\n  \"price\": 129.0,\n  \"order_id\": \"48213\"\n}"}
        ]}));
        assert_eq!(same.parts, [ToolPart::Data(order.clone())]);
        let other =
            read(json!({"structuredContent": order, "content": [{"type": "text", "text": "A blender."}]}));
        assert_eq!(other.parts, [ToolPart::Data(order), ToolPart::Text("A blender.".to_owned())]);
    }

    #[test]
    fn content_of_an_unknown_kind_is_kept_as_data() {
        let hologram = json!({"type": "hologram", "voxels": [1]});
        let output =
            output_of_unknown(&json!({"content": [{"type": "text", "text": "a"}, hologram]})).unwrap();
        assert_eq!(output.parts, [ToolPart::Text("a".to_owned()), ToolPart::Data(hologram)]);
        assert_eq!(output_of_unknown(&json!({"answer": 42})), None);
    }

    #[test]
    fn a_cut_frame_says_so_and_keeps_its_beginning() {
        let output = output_of(cut_result(b"{\"jsonrpc\":\xff".to_vec()));
        assert!(output.truncated);
        assert_eq!(output.parts, [ToolPart::Text("{\"jsonrpc\":\u{fffd}".to_owned())]);
    }
}
