//! `publish_artifact`: hands a result to the participants as an A2A artifact.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use harness_model::{ContentBody, ContentPart, truncate_chars};
use serde_json::{Map, Value, json};

use super::{IntrinsicRequest, Spill, StateTool, capped, object, text_argument};

/// Characters of the name of a file.
const FILE_NAME_CHARS_MAX: usize = 200;

pub(super) const TOOL: StateTool = StateTool {
    name: "publish_artifact",
    description: "Publish a result of this task as a named artifact: a document, data, a file or a link. Use it for what \
                  people keep; say the answer itself in plain text.",
    schema,
    idempotent: true,
    parse,
};

fn schema() -> Value {
    let file = object(
        json!({
            "name": {"type": "string", "minLength": 1},
            "media_type": {"type": "string"},
            "base64": {"type": "string", "description": "The bytes."},
        }),
        &["name", "base64"],
    );
    let part = object(
        json!({
            "text": {"type": "string"},
            "data": {"description": "Any JSON value."},
            "file": file,
            "url": {"type": "string", "description": "An http or https link."},
            "media_type": {"type": "string"},
            "filename": {"type": "string", "description": "File name of a text, data or url; a file has its own."},
        }),
        &[],
    );
    object(
        json!({
            "name": {"type": "string", "minLength": 1, "description": "Name of the artifact, unique in this task."},
            "description": {"type": "string"},
            "parts": {"type": "array", "minItems": 1, "items": part, "description": "Each part has one of text, data, file, url."},
        }),
        &["name", "parts"],
    )
}

fn parse(arguments: &Map<String, Value>, spill: &mut Spill) -> Result<IntrinsicRequest, String> {
    let items = arguments.get("parts").and_then(Value::as_array);
    let parts = items
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .enumerate()
        .map(|(index, fields)| part(fields, spill).map_err(|e| format!("part {index}: {e}")))
        .collect::<Result<Vec<_>, _>>()?;
    let description = text_argument(arguments, "description");
    Ok(IntrinsicRequest::PublishArtifact {
        name: truncate_chars(text_argument(arguments, "name"), 200),
        description: (!description.is_empty()).then(|| capped("description", description)).transpose()?,
        parts,
    })
}

fn part(fields: &Map<String, Value>, spill: &mut Spill) -> Result<ContentPart, String> {
    let given = ["text", "data", "file", "url"].iter().filter(|key| fields.contains_key(**key)).count();
    if given != 1 {
        return Err(format!("exactly one of text, data, file, url is needed, {given} are given"));
    }
    let media_type = fields.get("media_type").and_then(Value::as_str).map(str::to_owned);
    let filename = fields.get("filename").and_then(Value::as_str).and_then(file_name);
    let part = |body| ContentPart { body, media_type: media_type.clone(), filename: filename.clone() };
    if let Some(text) = fields.get("text").and_then(Value::as_str) {
        return Ok(part(ContentBody::Text(spill.text(text))));
    }
    if let Some(file) = fields.get("file").and_then(Value::as_object) {
        let bytes = STANDARD
            .decode(text_argument(file, "base64"))
            .map_err(|_| "file.base64 is not base64".to_owned())?;
        let own_type = file.get("media_type").and_then(Value::as_str).map(str::to_owned);
        return Ok(ContentPart {
            body: ContentBody::Raw(spill.bytes(bytes)),
            media_type: own_type.or(media_type),
            filename: file_name(text_argument(file, "name")).or(filename),
        });
    }
    if let Some(url) = fields.get("url").and_then(Value::as_str) {
        let lower = url.to_ascii_lowercase();
        if !(lower.starts_with("https://") || lower.starts_with("http://")) || url.len() > 2_048 {
            return Err("url must be an http or https link of at most 2048 characters".to_owned());
        }
        return Ok(part(ContentBody::Url(url.to_owned())));
    }
    let data = fields.get("data").unwrap_or(&Value::Null);
    Ok(part(ContentBody::Data(spill.text(&data.to_string()))))
}

/// The name of a file as peers see it; an empty one is none.
fn file_name(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| truncate_chars(text, FILE_NAME_CHARS_MAX))
}
