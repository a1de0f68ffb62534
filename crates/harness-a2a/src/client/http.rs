//! Bounded reading of responses, and the errors in them.

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

/// The response if its status is success. Errors of the protocol are read from the body, in either binding's form: some
/// agents send JSON-RPC errors with an error status, and agents of 1.0.0 other statuses than those of 1.0.1.
pub(super) async fn accepted(response: Response, max: usize) -> Result<Response, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let bytes = read_capped(response, max).await?;
    let parsed = parse_json_bounded(&bytes, limits::JSON_DEPTH_MAX).ok();
    let refused = parsed.and_then(|mut body| refusal(body.get_mut("error")?));
    Err(refused.unwrap_or_else(|| {
        let text = one_line(&String::from_utf8_lossy(&bytes));
        ClientError::Status { status: status.as_u16(), text: truncate_chars(&text, TEXT_CHARS_MAX) }
    }))
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    let value = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

/// The result in a JSON-RPC response to the request with this id.
pub(super) fn rpc_result(bytes: &[u8], id: &Value) -> Result<Value, ClientError> {
    let parsed = parse_json_bounded(bytes, limits::JSON_DEPTH_MAX).map_err(ClientError::invalid_response)?;
    let Value::Object(mut fields) = parsed else {
        return Err(ClientError::invalid_response("not an object"));
    };
    if let Some(error) = fields.remove("error").filter(|error| !error.is_null()) {
        return Err(
            refusal(&error).unwrap_or_else(|| ClientError::invalid_response("an error without a code"))
        );
    }
    if fields.get("id") != Some(id) {
        return Err(ClientError::invalid_response("the answer belongs to another request"));
    }
    fields.remove("result").ok_or_else(|| ClientError::invalid_response("neither a result nor an error"))
}

/// The result that an HTTP+JSON body is. Nothing at all is the empty message.
pub(super) fn bare_result(bytes: &[u8]) -> Result<Value, ClientError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let parsed = parse_json_bounded(bytes, limits::JSON_DEPTH_MAX).map_err(ClientError::invalid_response)?;
    match parsed.get("error").and_then(refusal) {
        Some(refused) => Err(refused),
        None => Ok(parsed),
    }
}

/// An error of the protocol: JSON-RPC's, or a google.rpc.Status. `None` when it is neither.
fn refusal(error: &Value) -> Option<ClientError> {
    let code = error.get("code")?.as_i64()?;
    let details = ["data", "details"].iter().find_map(|key| error.get(key)?.as_array());
    let reasons = details.into_iter().flatten().filter_map(|detail| detail.get("reason")?.as_str());
    let by_reason = reasons.filter_map(ErrorKind::from_reason).next();
    let rpc_code = i32::try_from(code).ok().filter(|code| *code < 0);
    let kind = by_reason.or_else(|| ErrorKind::from_code(rpc_code?));
    Some(ClientError::Refused {
        code: rpc_code.or_else(|| kind.map(ErrorKind::code))?,
        kind,
        message: truncate_chars(&one_line(error.get("message")?.as_str()?), TEXT_CHARS_MAX),
    })
}
