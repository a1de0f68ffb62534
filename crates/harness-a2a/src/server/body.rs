//! Request bodies, read whole within a limit of bytes and time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

/// Time for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Bytes beyond the limit that are read and thrown away, so that a client hears the answer before the connection
/// closes under it.
const DISCARDED_BYTES_MAX: usize = 4 << 20;
/// Time for that.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    Broken,
}

/// Reads a body of at most `max` bytes. `declared` is what its length is said to be.
pub(super) async fn read(body: Body, declared: Option<u64>, max: usize) -> Result<Bytes, BodyError> {
    let mut body = body;
    if declared.is_some_and(|bytes| bytes > max as u64) {
        discard(&mut body).await;
        return Err(BodyError::TooLarge);
    }
    let read = tokio::time::timeout(BODY_TIME, collect(&mut body, max)).await;
    let result = read.unwrap_or(Err(BodyError::TooSlow));
    if result == Err(BodyError::TooLarge) {
        discard(&mut body).await;
    }
    result
}

async fn collect(body: &mut Body, max: usize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        if first.len() + whole.len() + chunk.len() > max {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() && whole.is_empty() {
            // Most bodies are one chunk, which then is not copied.
            first = chunk;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&chunk);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

async fn discard(body: &mut Body) {
    let reading = async {
        let mut bytes = 0;
        while bytes < DISCARDED_BYTES_MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Whether it was read to its end makes no difference to the answer.
    drop(tokio::time::timeout(DISCARD_TIME, reading).await);
}
