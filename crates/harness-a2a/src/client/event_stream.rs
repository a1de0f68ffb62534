//! A stream of a task's events, as the client sees it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use a2a::StreamResponse;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use reqwest::Response;

use super::{
    ClientError, ClientLimits,
    exchange::Framing,
    lenient,
    sse_decoder::{EventTooLarge, SseDecoder, SseEvent},
};

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamItem {
    /// Its position in the task's log, when the agent gives one: where a new stream resumes.
    pub seq: Option<u64>,
    /// The event.
    pub event: StreamResponse,
}

/// Events of one stream. It ends when the agent ends it, after a message (which comes instead of a task), or after an error. Dropping it closes the connection.
pub struct EventStream {
    items: BoxStream<'static, Result<StreamItem, ClientError>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

struct Reader {
    response: Response,
    decoder: SseDecoder,
    framing: Framing,
    idle: Duration,
    event_bytes_max: usize,
    done: bool,
}

impl EventStream {
    pub(super) fn new(response: Response, framing: Framing, limits: &ClientLimits) -> Self {
        let reader = Reader {
            response,
            decoder: SseDecoder::new(limits.event_bytes_max),
            framing,
            idle: limits.idle,
            event_bytes_max: limits.event_bytes_max,
            done: false,
        };
        let items = stream::unfold(reader, |mut reader| async move {
            if reader.done {
                return None;
            }
            let item = reader.next().await.transpose()?;
            // A message is all there is; whatever else the agent sends, or does not, says nothing.
            reader.done = match &item {
                Ok(item) => matches!(item.event, StreamResponse::Message(_)),
                Err(_) => true,
            };
            Some((item, reader))
        });
        Self::of_items(items.boxed())
    }

    pub(super) fn of_items(items: BoxStream<'static, Result<StreamItem, ClientError>>) -> Self {
        Self { items }
    }
}

impl Stream for EventStream {
    type Item = Result<StreamItem, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.poll_next_unpin(cx)
    }
}

impl Reader {
    async fn next(&mut self) -> Result<Option<StreamItem>, ClientError> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return self.item(&event).map(Some);
            }
            let chunk = tokio::time::timeout(self.idle, self.response.chunk());
            let chunk = chunk.await.map_err(|_| ClientError::TimedOut { time: self.idle })?;
            let Some(chunk) = chunk.map_err(ClientError::unreachable)? else { return Ok(None) };
            self.decoder
                .push(&chunk)
                .map_err(|EventTooLarge| ClientError::TooLarge { max: self.event_bytes_max })?;
        }
    }

    fn item(&self, event: &SseEvent) -> Result<StreamItem, ClientError> {
        let mut result = self.framing.result(event.data.as_bytes())?;
        lenient::complete_event(&mut result);
        Ok(StreamItem {
            seq: event.id.as_ref().and_then(|id| id.parse().ok()),
            event: serde_json::from_value(result).map_err(ClientError::invalid_response)?,
        })
    }
}
