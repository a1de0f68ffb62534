//! Event streams: one frame for each event, numbered by its position in the task's log.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::StreamExt;
use serde_json::value::{RawValue, to_raw_value};

use super::dispatch::logged;
use crate::{A2aError, A2aService, service::Events};

/// A comment is sent when nothing else was for this long, so that nobody on the way closes the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream as a response. `frame` gives an event or an error the form of the binding.
pub(super) fn response(
    service: A2aService,
    events: Events,
    frame: impl Fn(Result<Box<RawValue>, A2aError>) -> String + Send + 'static,
) -> Response {
    let frames = events.map(move |item| {
        let (seq, event) = match item {
            Ok((seq, event)) => (Some(seq), to_raw_value(&event).map_err(A2aError::internal)),
            Err(error) => (None, Err(error)),
        };
        let event = event.map_err(|error| logged(&service, "stream", error));
        let sse = Event::default().data(frame(event));
        Ok::<_, Infallible>(match seq {
            Some(seq) => sse.id(seq.to_string()),
            None => sse,
        })
    });
    let sse = Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies that buffer would hold events back.
    ([("x-accel-buffering", "no")], sse).into_response()
}
