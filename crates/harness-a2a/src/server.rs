//! The HTTP server: limits outermost, then the card, JSON-RPC at `/`, own routes, and HTTP+JSON for everything else.

mod body;
mod call;
mod connection;
mod dispatch;
mod even_refusal;
mod limits;
mod operators;
mod rate_limit;
mod rest;
mod rpc;
mod sse;

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tower_http::cors::{AllowOrigin, CorsLayer};

pub use connection::serve;
pub(crate) use even_refusal::EvenRefusals;

use crate::{A2aConfig, A2aService, SecurityScheme};

/// How long clients may keep the card before they ask again. Unit: seconds.
const CARD_MAX_AGE: &str = "public, max-age=300";

/// Where the JSON-RPC binding is found besides the root: some clients post there whatever the card says.
const JSON_RPC_PATHS: [&str; 2] = ["/a2a/v1", "/a2a/v1/"];

/// Every route of the server. `extra` are own routes (a user interface, a monitor); they come before those of the
/// HTTP+JSON binding, whose root-level path parameters would otherwise take them.
pub fn router(service: A2aService, extra: Router) -> Router {
    let limits = limits::Limits::of(&service);
    let cors = cors(&service.inner.config);
    let rpc = Router::new().route("/", post(rpc::handle));
    let rpc = JSON_RPC_PATHS.iter().fold(rpc, |routes, path| routes.route(path, post(rpc::handle)));
    let routes = rpc
        .route("/.well-known/agent-card.json", get(card))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(operators::ready))
        .route("/_monitor", get(operators::monitor))
        .route("/_purge", post(operators::purge))
        .fallback(rest::handle)
        .with_state(service)
        .merge(extra);
    let routes = match cors {
        Some(layer) => routes.layer(layer),
        None => routes,
    };
    // The limits layer has counted the body already; the framework's own limit would refuse what was configured.
    let routes = routes.layer(DefaultBodyLimit::disable());
    routes.layer(middleware::from_fn_with_state(limits, limits::enforce))
}

async fn card(State(service): State<A2aService>, headers: HeaderMap) -> Response {
    let card = &service.inner.card;
    let shared = [
        (header::ETAG, card.etag.clone()),
        (header::LAST_MODIFIED, card.last_modified()),
        (header::CACHE_CONTROL, CARD_MAX_AGE.to_owned()),
        (header::CONTENT_TYPE, "application/json".to_owned()),
    ];
    if card.is_known_to(&headers) {
        return (StatusCode::NOT_MODIFIED, shared).into_response();
    }
    (shared, card.body.clone()).into_response()
}

/// Cross-origin rules; `None` when no origin is configured, so that browsers refuse all of them.
fn cors(config: &A2aConfig) -> Option<CorsLayer> {
    let origins = &config.cors_origins;
    let origin = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        let listed: Vec<HeaderValue> =
            origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
        if listed.is_empty() {
            return None;
        }
        AllowOrigin::list(listed)
    };
    let header_names = ["a2a-version", "a2a-extensions", "content-type", "x-participant-id", "last-event-id"];
    let mut header_names: Vec<HeaderName> = header_names.map(HeaderName::from_static).into();
    // Pages sign in like everybody else.
    header_names.extend(config.security.iter().map(SecurityScheme::header));
    Some(
        CorsLayer::new()
            .allow_origin(origin)
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            .allow_headers(header_names)
            .expose_headers([HeaderName::from_static("a2a-extensions"), header::WWW_AUTHENTICATE]),
    )
}
