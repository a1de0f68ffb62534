//! The one place where an operation is chosen; both bindings end here.

use a2a::jsonrpc::methods as m;
use harness_model::{ParseJsonError, limits, parse_json_bounded, truncate_chars};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::{
    A2aError, A2aService, ErrorKind, proto_json,
    service::{Call, Events},
};

/// Characters of an unknown method that are repeated in the error.
const METHOD_CHARS_MAX: usize = 80;

/// What an operation answers with.
pub(super) enum Reply {
    Value(Box<RawValue>),
    Stream(Events),
}

/// Runs the operation with this name. Errors that somebody has to look into are logged here, and only here.
pub(super) async fn dispatch(
    service: &A2aService,
    call: &Call,
    method: &str,
    params: Value,
) -> Result<Reply, A2aError> {
    let begun = Instant::now();
    let result = run(service, call, method, params).await;
    if result.as_ref().is_err_and(|error| error.kind == ErrorKind::TaskNotFound) {
        service.inner.refusals.hold(begun).await;
    }
    result.map_err(|error| logged(service, method, error))
}

/// Logs an error that has a cause, and gives the caller a number to ask for.
pub(super) fn logged(service: &A2aService, method: &str, mut error: A2aError) -> A2aError {
    if let Some(cause) = error.cause_chain() {
        let incident = service.inner.ids.fresh();
        if error.kind == ErrorKind::Unavailable {
            warn!(incident, method, cause, "request failed for now");
        } else {
            error!(incident, method, cause, "request failed");
        }
        error.message = format!("{} (incident {incident})", error.message);
    }
    error
}

async fn run(service: &A2aService, call: &Call, method: &str, params: Value) -> Result<Reply, A2aError> {
    let mut params = if params.is_null() { Value::Object(Map::new()) } else { params };
    if !params.is_object() {
        return Err(A2aError::invalid_field("params", "params must be an object"));
    }
    proto_json::normalize(&mut params);
    match method {
        m::SEND_MESSAGE => {
            proto_json::check_parts(&mut params)?;
            value(&service.send(call, proto_json::parse(params)?).await?)
        }
        m::SEND_STREAMING_MESSAGE => {
            proto_json::check_parts(&mut params)?;
            service.send_streaming(call, proto_json::parse(params)?).await.map(Reply::Stream)
        }
        m::GET_TASK => value(&service.get(call, proto_json::parse(params)?).await?),
        m::LIST_TASKS => value(&service.list(call, proto_json::parse(params)?).await?),
        m::CANCEL_TASK => value(&service.cancel(call, proto_json::parse(params)?).await?),
        m::SUBSCRIBE_TO_TASK => service.subscribe(call, proto_json::parse(params)?).await.map(Reply::Stream),
        m::CREATE_PUSH_CONFIG => value(&service.create_push_config(call, proto_json::parse(params)?).await?),
        m::GET_PUSH_CONFIG => value(&service.get_push_config(call, proto_json::parse(params)?).await?),
        m::LIST_PUSH_CONFIGS => value(&service.list_push_configs(call, proto_json::parse(params)?).await?),
        m::DELETE_PUSH_CONFIG => {
            service.delete_push_config(call, proto_json::parse(params)?).await?;
            value(&Map::new())
        }
        m::GET_EXTENDED_AGENT_CARD => Err(A2aError::unsupported("the agent has no extended card")),
        _ => {
            let method = truncate_chars(method, METHOD_CHARS_MAX);
            Err(A2aError::new(ErrorKind::MethodNotFound, format!("method not found: {method}")))
        }
    }
}

fn value<T: Serialize>(value: &T) -> Result<Reply, A2aError> {
    to_raw_value(value).map(Reply::Value).map_err(A2aError::internal)
}

/// Reads the body of a request.
pub(super) fn parse_body(body: &[u8]) -> Result<Value, A2aError> {
    parse_json_bounded(body, limits::JSON_DEPTH_MAX).map_err(|error| {
        let kind = match error {
            ParseJsonError::Invalid { .. } => ErrorKind::ParseError,
            ParseJsonError::TooDeep(_) => ErrorKind::InvalidRequest,
        };
        A2aError::new(kind, error.to_string())
    })
}
