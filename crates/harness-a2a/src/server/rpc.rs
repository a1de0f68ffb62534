//! The JSON-RPC binding.

use axum::{
    body::Bytes,
    extract::State,
    http::{Extensions, HeaderMap, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    call::{announce, authority, call, challenge, check_content_type, query},
    dispatch::{Reply, dispatch, logged, parse_body},
    sse,
};
use crate::{A2aError, A2aService, ErrorKind};

#[derive(Serialize)]
struct Success<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: &'a RawValue,
}

pub(super) async fn handle(
    State(service): State<A2aService>,
    headers: HeaderMap,
    uri: Uri,
    extensions: Extensions,
    body: Bytes,
) -> Response {
    let (id, read) = read(&headers, &body);
    let authority = match authority(&service, &headers, &extensions) {
        Ok(authority) => authority,
        Err(error) => return challenge(&service, json_response(failure(&id, &error))),
    };
    let (method, params) = match read {
        Ok(read) => read,
        Err(error) => return json_response(failure(&id, &error)),
    };
    let call = query(&uri).and_then(|pairs| call(&service, &headers, &pairs, &extensions, authority));
    let call = match call {
        Ok(call) => call,
        Err(error) => return json_response(failure(&id, &logged(&service, &method, error))),
    };
    let response = match dispatch(&service, &call, &method, params).await {
        Ok(Reply::Value(result)) => json_response(success(&id, &result)),
        Ok(Reply::Stream(events)) => sse::response(service, events, move |event| match event {
            Ok(result) => success(&id, &result),
            Err(error) => failure(&id, &error),
        }),
        Err(error) => json_response(failure(&id, &error)),
    };
    announce(&call, response)
}

/// Reads a request: the id to answer under, as far as it could be read, then the method and its parameters.
fn read(headers: &HeaderMap, body: &[u8]) -> (Value, Result<(String, Value), A2aError>) {
    let invalid = |text: &str| A2aError::new(ErrorKind::InvalidRequest, text);
    let parsed = check_content_type(headers).and_then(|()| parse_body(body));
    let mut fields = match parsed {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => {
            let text = "a request must be one JSON object; batches are not part of A2A";
            return (Value::Null, Err(invalid(text)));
        }
        Err(error) => return (Value::Null, Err(error)),
    };
    let id = fields.remove("id").unwrap_or(Value::Null);
    if !(id.is_null() || id.is_string() || id.is_i64() || id.is_u64()) {
        return (Value::Null, Err(invalid("id must be a string or a whole number")));
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return (id, Err(invalid("jsonrpc must be \"2.0\"")));
    }
    match fields.remove("method") {
        Some(Value::String(method)) => (id, Ok((method, fields.remove("params").unwrap_or(Value::Null)))),
        Some(_) | None => (id, Err(invalid("method must be a string"))),
    }
}

fn success(id: &Value, result: &RawValue) -> String {
    // Serialising a value and raw JSON into a string cannot fail.
    serde_json::to_string(&Success { jsonrpc: "2.0", id, result }).unwrap_or_default()
}

fn failure(id: &Value, error: &A2aError) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": error.to_json_rpc()}).to_string()
}

fn json_response(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
