//! The outermost layer: nothing reaches a handler that is too frequent or too large.

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use harness_model::Timestamp;

use super::{
    body::{self, BodyError},
    connection::Connection,
    rate_limit::RateLimit,
};
use crate::{
    A2aService, OwnRequest,
    own_proof::{Claim, Proven},
};

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
    let now = inner.clock.now();
    let peer = request.extensions().get::<Connection>().map(|connection| connection.peer.ip());
    let admitted = || limits.rate.admits(peer.unwrap_or(IpAddr::from([0, 0, 0, 0])), now);
    // The agent's own requests are not limited; what only looks like one is, once its body is known.
    let claim = own_claim(&limits.service, &request, now);
    if claim.is_none() && !admitted() {
        return too_many();
    }
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
    let (mut parts, body) = request.into_parts();
    match body::read(body, declared, inner.config.max_request_bytes).await {
        Ok(bytes) => {
            if claim.as_ref().is_some_and(|claim| claim.covers(&bytes)) {
                parts.extensions.insert(Proven);
            } else if claim.is_some() && !admitted() {
                return too_many();
            }
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err(BodyError::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, "request too large").into_response(),
        Err(BodyError::TooSlow) => {
            (StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time").into_response()
        }
        Err(BodyError::Broken) => (StatusCode::BAD_REQUEST, "the request body ended early").into_response(),
    }
}

fn too_many() -> Response {
    (StatusCode::TOO_MANY_REQUESTS, "rate limit exceeded").into_response()
}

/// The proof that a request is the agent's own, as far as its head says.
fn own_claim(service: &A2aService, request: &Request, now: Timestamp) -> Option<Claim> {
    let config = &service.inner.config;
    let key = config.push_key.as_ref()?;
    let claim = Claim::of(request.headers())?;
    let target = request.uri().path_and_query()?.as_str();
    let about = OwnRequest { base_url: &config.base_url, method: request.method().as_str(), target };
    claim.holds(key, about, now).then_some(claim)
}
