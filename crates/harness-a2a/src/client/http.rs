//! Bounded reading of responses.

use a2a::jsonrpc::JsonRpcError;
use bytes::{Bytes, BytesMut};
use harness_model::{limits, one_line, parse_json_bounded, truncate_chars};
use reqwest::Response;
use serde_json::Value;

use super::ClientError;
use crate::ErrorKind;

/// Characters of an error body that are shown.
const TEXT_CHARS_MAX: usize = 200;

/// The whole body, if it has at most `max` bytes.
pub(super) async fn read_capped(mut response: Response, max: usize) -> Result<Bytes, ClientError> {
    if response.content_length().is_some_and(|bytes| bytes > max as u64) {
        return Err(ClientError::TooLarge { max });
    }
    let mut whole = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(ClientError::unreachable)? {
        if whole.len() + chunk.len() > max {
            return Err(ClientError::TooLarge { max });
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// The response if its status is success. Some agents send JSON-RPC errors with an error status; those are errors too.
pub(super) async fn accepted(response: Response, max: usize) -> Result<Response, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let bytes = read_capped(response, max).await?;
    let refused = parse_json_bounded(&bytes, limits::JSON_DEPTH_MAX)
        .ok()
        .and_then(|mut body| serde_json::from_value::<JsonRpcError>(body.get_mut("error")?.take()).ok());
    Err(match refused {
        Some(error) if error.code < 0 => refusal(error),
        Some(_) | None => {
            let text = one_line(&String::from_utf8_lossy(&bytes));
            ClientError::Status { status: status.as_u16(), text: truncate_chars(&text, TEXT_CHARS_MAX) }
        }
    })
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    let value = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

/// The result in a JSON-RPC response to the request with this id.
pub(super) fn result(bytes: &[u8], id: &Value) -> Result<Value, ClientError> {
    let parsed = parse_json_bounded(bytes, limits::JSON_DEPTH_MAX).map_err(ClientError::invalid_response)?;
    let Value::Object(mut fields) = parsed else {
        return Err(ClientError::invalid_response("not an object"));
    };
    if let Some(error) = fields.remove("error").filter(|error| !error.is_null()) {
        let error = serde_json::from_value(error).map_err(ClientError::invalid_response)?;
        return Err(refusal(error));
    }
    if fields.get("id") != Some(id) {
        return Err(ClientError::invalid_response("the answer belongs to another request"));
    }
    fields.remove("result").ok_or_else(|| ClientError::invalid_response("neither a result nor an error"))
}

fn refusal(error: JsonRpcError) -> ClientError {
    ClientError::Refused {
        code: error.code,
        kind: ErrorKind::from_code(error.code),
        message: truncate_chars(&one_line(&error.message), TEXT_CHARS_MAX),
    }
}
