//! The outermost layer: nothing reaches a handler that is too frequent or too large.

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    body::{self, BodyError},
    connection::Connection,
    rate_limit::RateLimit,
};
use crate::A2aService;

/// What the layer knows.
#[derive(Clone)]
pub(super) struct Limits {
    service: A2aService,
    rate: Arc<RateLimit>,
}

impl Limits {
    pub(super) fn of(service: &A2aService) -> Self {
        let rate = Arc::new(RateLimit::new(service.inner.config.rate_limit_per_minute));
        Self { service: service.clone(), rate }
    }
}

/// Counts the request and reads its body; handlers get it whole.
pub(super) async fn enforce(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let inner = &limits.service.inner;
    let peer = request.extensions().get::<Connection>().map(|connection| connection.peer.ip());
    if !limits.rate.admits(peer.unwrap_or(IpAddr::from([0, 0, 0, 0])), inner.clock.now()) {
        return (StatusCode::TOO_MANY_REQUESTS, "rate limit exceeded").into_response();
    }
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
    let (parts, body) = request.into_parts();
    match body::read(body, declared, inner.config.max_request_bytes).await {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(BodyError::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, "request too large").into_response(),
        Err(BodyError::TooSlow) => {
            (StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time").into_response()
        }
        Err(BodyError::Broken) => (StatusCode::BAD_REQUEST, "the request body ended early").into_response(),
    }
}
