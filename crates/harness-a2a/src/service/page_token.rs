//! Page tokens of listings: opaque to clients, checked when they come back.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use harness_model::{TaskId, Timestamp, limits};
use harness_ports::TaskCursor;

use crate::A2aError;

/// First byte of every token: the format's version.
const VERSION: &str = "1";

pub(super) fn encode(cursor: &TaskCursor) -> String {
    let text = format!("{VERSION}:{}:{}", cursor.status_at.as_millis(), cursor.task_id);
    BASE64_URL_SAFE_NO_PAD.encode(text)
}

/// Errors: `InvalidParams` for anything this server did not hand out.
pub(super) fn decode(token: &str) -> Result<TaskCursor, A2aError> {
    parse(token)
        .ok_or_else(|| A2aError::invalid_field("pageToken", "pageToken is not one this agent gave out"))
}

fn parse(token: &str) -> Option<TaskCursor> {
    if token.len() > 2 * limits::ID_CHARS_MAX {
        return None;
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let (millis, id) = text.strip_prefix(VERSION)?.strip_prefix(':')?.split_once(':')?;
    let status_at = Timestamp::from_millis(millis.parse().ok()?);
    (!id.is_empty()).then(|| TaskCursor { status_at, task_id: TaskId::from(id) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip_and_garbage_is_refused() {
        let cursor = TaskCursor { status_at: Timestamp::from_millis(-5), task_id: TaskId::from("a:b") };
        assert_eq!(decode(&encode(&cursor)).unwrap(), cursor);
        for wrong in ["", "999", "MTo", "!!!!", &"A".repeat(600)] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
