//! The HTTP+JSON binding, at the root and below any tenant. Source: A2A 1.0.1 section 11.

use a2a::jsonrpc::methods as m;
use axum::{
    body::Bytes,
    extract::State,
    http::{Extensions, HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::{
    call::{QueryPairs, announce, authority, call, challenge, check_content_type, query, value_of},
    dispatch::{Reply, dispatch, logged, parse_body},
    sse,
};
use crate::{A2aError, A2aService};

/// First segments of the binding's own paths; anything else before one of them is a tenant.
const ROOTS: [&str; 4] = ["tasks", "message:send", "message:stream", "extendedAgentCard"];

/// An operation and its parameters.
type Operation = (&'static str, Map<String, Value>);

pub(super) async fn handle(
    State(service): State<A2aService>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    extensions: Extensions,
    body: Bytes,
) -> Response {
    let Some(segments) = segments(uri.path()) else { return not_found() };
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let own = match segments.as_slice() {
        // Every tenant names this same agent.
        [tenant, rest @ ..] if !rest.is_empty() && !ROOTS.contains(tenant) => rest,
        all => all,
    };
    if !own.first().is_some_and(|root| ROOTS.contains(root)) {
        return not_found();
    }
    let authority = match authority(&service, &headers, &extensions) {
        Ok(authority) => authority,
        Err(error) => return challenge(&service, error_response(&error)),
    };
    let read = query(&uri).and_then(|pairs| {
        let call = call(&service, &headers, &pairs, &extensions, authority)?;
        Ok((call, operation(&method, own, &pairs, &headers, &body)?))
    });
    let (call, operation) = match read {
        Ok(read) => read,
        Err(error) => return error_response(&logged(&service, "request", error)),
    };
    let Some((name, params)) = operation else { return no_operation(own) };
    let response = match dispatch(&service, &call, name, Value::Object(params)).await {
        Ok(Reply::Value(value)) => json_response(StatusCode::OK, value.get().to_owned()),
        Ok(Reply::Stream(events)) => sse::response(service, events, |event| match event {
            Ok(value) => value.get().to_owned(),
            Err(error) => error.to_rest().to_string(),
        }),
        Err(error) => error_response(&error),
    };
    announce(&call, response)
}

/// The decoded segments of a path; `None` when one is not text.
fn segments(path: &str) -> Option<Vec<String>> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    parts.map(|part| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned())).collect()
}

fn operation(
    method: &Method,
    segments: &[&str],
    pairs: &QueryPairs,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Option<Operation>, A2aError> {
    let verb = match method.as_str() {
        // A stream has no head to look at without its body.
        "HEAD" if !segments.last().is_some_and(|name| name.ends_with(":subscribe")) => "GET",
        verb => verb,
    };
    let found = match (verb, segments) {
        ("POST", ["message:send"]) => (m::SEND_MESSAGE, object(headers, body)?),
        ("POST", ["message:stream"]) => (m::SEND_STREAMING_MESSAGE, object(headers, body)?),
        ("GET", ["extendedAgentCard"]) => (m::GET_EXTENDED_AGENT_CARD, Map::new()),
        ("GET", ["tasks"]) => (m::LIST_TASKS, list_params(pairs)?),
        ("GET" | "POST", ["tasks", name]) if name.ends_with(":subscribe") => {
            (m::SUBSCRIBE_TO_TASK, with_id(Map::new(), "id", stem(name, ":subscribe")))
        }
        ("POST", ["tasks", name]) if name.ends_with(":cancel") => {
            (m::CANCEL_TASK, with_id(object(headers, body)?, "id", stem(name, ":cancel")))
        }
        ("GET", ["tasks", id]) => {
            let mut params = with_id(Map::new(), "id", id);
            insert_number(&mut params, pairs, "historyLength")?;
            (m::GET_TASK, params)
        }
        ("POST", ["tasks", id, "pushNotificationConfigs"]) => {
            (m::CREATE_PUSH_CONFIG, with_id(object(headers, body)?, "taskId", id))
        }
        ("GET", ["tasks", id, "pushNotificationConfigs"]) => {
            let mut params = with_id(Map::new(), "taskId", id);
            insert_number(&mut params, pairs, "pageSize")?;
            if let Some(token) = parameter(pairs, "pageToken") {
                params.insert("pageToken".to_owned(), token.into());
            }
            (m::LIST_PUSH_CONFIGS, params)
        }
        ("GET", ["tasks", id, "pushNotificationConfigs", config]) => {
            (m::GET_PUSH_CONFIG, with_id(with_id(Map::new(), "taskId", id), "id", config))
        }
        ("DELETE", ["tasks", id, "pushNotificationConfigs", config]) => {
            (m::DELETE_PUSH_CONFIG, with_id(with_id(Map::new(), "taskId", id), "id", config))
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

/// The id in front of a custom verb.
fn stem<'a>(name: &'a str, verb: &str) -> &'a str {
    name.strip_suffix(verb).unwrap_or(name)
}

/// The body as an object; an empty body is an empty one.
fn object(headers: &HeaderMap, body: &Bytes) -> Result<Map<String, Value>, A2aError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    check_content_type(headers)?;
    let Value::Object(fields) = parse_body(body)? else {
        return Err(A2aError::invalid_params("the body must be a JSON object"));
    };
    Ok(fields)
}

/// The path names the resource, whatever the body says.
fn with_id(mut params: Map<String, Value>, key: &str, id: &str) -> Map<String, Value> {
    params.insert(key.to_owned(), id.into());
    params
}

fn list_params(pairs: &QueryPairs) -> Result<Map<String, Value>, A2aError> {
    let mut params = Map::new();
    for name in ["contextId", "status", "pageToken", "statusTimestampAfter"] {
        if let Some(value) = parameter(pairs, name) {
            params.insert(name.to_owned(), value.into());
        }
    }
    insert_number(&mut params, pairs, "pageSize")?;
    insert_number(&mut params, pairs, "historyLength")?;
    if let Some(value) = parameter(pairs, "includeArtifacts") {
        let flag: bool = value.parse().map_err(|_| {
            A2aError::invalid_field("includeArtifacts", "includeArtifacts must be true or false")
        })?;
        params.insert("includeArtifacts".to_owned(), flag.into());
    }
    Ok(params)
}

fn insert_number(params: &mut Map<String, Value>, pairs: &QueryPairs, name: &str) -> Result<(), A2aError> {
    if let Some(value) = parameter(pairs, name) {
        let number: i32 = value
            .parse()
            .map_err(|_| A2aError::invalid_field(name, format!("{name} must be a whole number")))?;
        params.insert(name.to_owned(), number.into());
    }
    Ok(())
}

/// A query parameter by its JSON name, or by the name in the `.proto` file.
fn parameter<'a>(pairs: &'a QueryPairs, name: &str) -> Option<&'a str> {
    let snake: String = name
        .chars()
        .flat_map(|ch| [ch.is_ascii_uppercase().then_some('_'), Some(ch.to_ascii_lowercase())])
        .flatten()
        .collect();
    value_of(pairs, name).or_else(|| value_of(pairs, &snake)).filter(|value| !value.is_empty())
}

/// The methods that a path takes; `None` when there is nothing at it.
fn allowed(segments: &[&str]) -> Option<&'static str> {
    Some(match segments {
        ["message:send" | "message:stream"] => "POST",
        ["extendedAgentCard" | "tasks"] => "GET, HEAD",
        ["tasks", name] if name.ends_with(":subscribe") => "GET, POST",
        // An id may look like this, too.
        ["tasks", name] if name.ends_with(":cancel") => "GET, HEAD, POST",
        ["tasks", _] => "GET, HEAD",
        ["tasks", _, "pushNotificationConfigs"] => "GET, HEAD, POST",
        ["tasks", _, "pushNotificationConfigs", _] => "DELETE, GET, HEAD",
        _ => return None,
    })
}

/// The answer to a method that the path does not take.
fn no_operation(segments: &[&str]) -> Response {
    let Some(methods) = allowed(segments) else { return not_found() };
    let body = json!({"error": {
        "code": 405, "status": "UNIMPLEMENTED", "message": format!("this takes {methods}"), "details": []
    }});
    let response = json_response(StatusCode::METHOD_NOT_ALLOWED, body.to_string());
    ([(header::ALLOW, methods)], response).into_response()
}

fn not_found() -> Response {
    let body = json!({"error": {
        "code": 404, "status": "NOT_FOUND", "message": "no such resource", "details": []
    }});
    json_response(StatusCode::NOT_FOUND, body.to_string())
}

fn error_response(error: &A2aError) -> Response {
    let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_response(status, error.to_rest().to_string())
}

fn json_response(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/a2a+json")], body).into_response()
}
