//! Routes for operators: whether this process can take work, what the last tick saw, and the purge of a task.

use axum::{
    body::Bytes,
    extract::State,
    http::{Extensions, HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use harness_model::TaskId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    call::{authority, challenge},
    dispatch::logged,
};
use crate::{A2aError, A2aService, ErrorKind, access::Authority};

/// `GET /readyz`: whether a load balancer may send work here.
pub(super) async fn ready(State(service): State<A2aService>) -> Response {
    match service.readiness().await {
        Ok(()) => "ok\n".into_response(),
        Err(unready) => (StatusCode::SERVICE_UNAVAILABLE, format!("{unready}\n")).into_response(),
    }
}

/// `GET /_monitor`: what the last tick saw, whichever process took it. For everybody who could call the agent.
pub(super) async fn monitor(
    State(service): State<A2aService>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Response {
    if let Err(error) = authority(&service, &headers, &extensions) {
        return challenge(&service, problem(&error));
    }
    match service.monitor().await {
        Ok(picture) => answer(&picture),
        Err(error) => problem(&logged(&service, "monitor", error)),
    }
}

/// What is to be purged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Purge {
    task: TaskId,
}

/// `POST /_purge`: deletes a task. For the agent's own commands alone, which prove that they have its key; to everybody
/// else there is no such route.
pub(super) async fn purge(
    State(service): State<A2aService>,
    headers: HeaderMap,
    extensions: Extensions,
    body: Bytes,
) -> Response {
    match authority(&service, &headers, &extensions) {
        Ok(Authority::Own) => {}
        Ok(Authority::Principal(_) | Authority::Asserted) | Err(_) => {
            return StatusCode::NOT_FOUND.into_response();
        }
    }
    let Ok(Purge { task }) = serde_json::from_slice(&body) else {
        return (StatusCode::BAD_REQUEST, "the body names no task\n").into_response();
    };
    match service.purge(&task).await {
        Ok(deleted) => {
            let rows: Map<String, Value> =
                deleted.iter().map(|(kind, rows)| (kind.name().to_owned(), json!(rows))).collect();
            answer(&json!({ "deleted": rows }))
        }
        Err(error) => problem(&logged(&service, "purge", error)),
    }
}

fn answer(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, value.to_string()).into_response()
}

fn problem(error: &A2aError) -> Response {
    let for_now = error.kind == ErrorKind::Unavailable;
    let status = if for_now { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::INTERNAL_SERVER_ERROR };
    (status, format!("{error}\n")).into_response()
}
