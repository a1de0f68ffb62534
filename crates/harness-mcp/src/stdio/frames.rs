//! What a child writes on stdout: one JSON-RPC message per line, bounded, nonsense skipped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use harness_model::{depth_at_most, limits, names};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::json;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, BufReader},
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::answer_id::answer_id;
use crate::result::cut_result;

/// Bytes of one frame.
const FRAME_BYTES_MAX: usize = limits::TOOL_RESULT_BYTES_MAX;
/// Bytes of nonsense in a row after which the child is given up.
const NONSENSE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Frames larger than this are parsed off the runtime's threads.
const PARSE_INLINE_BYTES_MAX: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;

/// Marks, in the `data` of an error, an answer that could not be read: the call ran, nobody knows how it ended.
const UNREADABLE_KEY: &str = names::NAMESPACE;

/// Whether an error stands for an answer that could not be read.
pub(crate) fn is_unreadable(error: &ErrorData) -> bool {
    error.data.as_ref().is_some_and(|data| data.get(UNREADABLE_KEY).is_some())
}

/// What the reader tells others when it ends.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) server: String,
    /// Cancelled when the child is given up.
    pub(super) leave: CancellationToken,
    pub(super) reading: Reading,
}

/// Whether the reader still has something to do once the child is gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    busy: Arc<AtomicBool>,
    ended: CancellationToken,
}

impl Reading {
    /// Waits until stdout is read to its end, or nothing came for `quiet` although it is open.
    pub(super) async fn settled(&self, quiet: Duration) -> Settled {
        while timeout(quiet, self.ended.cancelled()).await.is_err() {
            if !self.busy.load(Ordering::Acquire) {
                return Settled::HeldOpen;
            }
        }
        Settled::Ended
    }
}

/// How stdout was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Ended,
    /// Something that is not the child holds it.
    HeldOpen,
}

/// Reads messages until the stream ends, nobody wants them any more, or the child writes too much nonsense.
pub(super) async fn read(
    stdout: impl AsyncRead + Unpin,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    ends: Ends,
) {
    let _ended = ends.reading.ended.clone().drop_guard();
    let busy = &ends.reading.busy;
    let mut lines = Lines::new(stdout, FRAME_BYTES_MAX);
    let mut nonsense_bytes = 0;
    loop {
        busy.store(false, Ordering::Release);
        let Some(line) = lines.next().await else { return };
        busy.store(true, Ordering::Release);
        match decode(line).await {
            Decoded::Message(message) => {
                nonsense_bytes = 0;
                if messages.send(*message).await.is_err() {
                    return;
                }
            }
            Decoded::Blank => {}
            Decoded::Nonsense { bytes } => {
                if nonsense_bytes == 0 {
                    tracing::warn!(
                        server = ends.server,
                        "something other than MCP messages on stdout; skipped"
                    );
                }
                nonsense_bytes += bytes;
                if nonsense_bytes > NONSENSE_BYTES_MAX {
                    tracing::warn!(
                        server = ends.server,
                        "nothing but nonsense on stdout; the server is stopped"
                    );
                    ends.leave.cancel();
                    return;
                }
            }
        }
    }
}

/// One line, without its end.
#[derive(Debug, PartialEq)]
enum Line {
    Whole(Vec<u8>),
    /// The beginning of a line that was longer than allowed.
    Cut(Vec<u8>),
}

#[derive(Debug)]
enum Decoded {
    Message(Box<ServerJsonRpcMessage>),
    Blank,
    Nonsense { bytes: usize },
}

async fn decode(line: Line) -> Decoded {
    let bytes = match &line {
        Line::Whole(bytes) | Line::Cut(bytes) => bytes.len(),
    };
    if bytes <= PARSE_INLINE_BYTES_MAX {
        return decode_now(line);
    }
    // A panic of the parser is nonsense like any other.
    tokio::task::spawn_blocking(move || decode_now(line)).await.unwrap_or(Decoded::Nonsense { bytes })
}

fn decode_now(line: Line) -> Decoded {
    let bytes = match line {
        Line::Cut(beginning) => {
            return match answer_id(&beginning) {
                Some(id) => {
                    let result = ServerResult::CallToolResult(cut_result(beginning));
                    Decoded::Message(Box::new(JsonRpcMessage::response(result, id)))
                }
                None => Decoded::Nonsense { bytes: beginning.len() },
            };
        }
        Line::Whole(bytes) => bytes,
    };
    if bytes.trim_ascii().is_empty() {
        return Decoded::Blank;
    }
    if depth_at_most(&bytes, limits::JSON_DEPTH_MAX)
        && let Ok(message) = serde_json::from_slice(&bytes)
    {
        return Decoded::Message(Box::new(message));
    }
    match answer_id(&bytes) {
        Some(id) => {
            let error = ErrorData::new(
                ErrorCode::INTERNAL_ERROR,
                "the answer is not a valid MCP message",
                Some(json!({ UNREADABLE_KEY: true })),
            );
            Decoded::Message(Box::new(JsonRpcMessage::error(error, Some(id))))
        }
        None => Decoded::Nonsense { bytes: bytes.len() },
    }
}

/// Lines of at most `cap` bytes.
struct Lines<R> {
    reader: BufReader<R>,
    cap: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(stream: R, cap: usize) -> Self {
        Self { reader: BufReader::with_capacity(READ_BYTES, stream), cap }
    }

    /// The next line; `None` at the end of the stream. A line without its end is dropped: it was not written whole.
    async fn next(&mut self) -> Option<Line> {
        let mut line = Vec::new();
        loop {
            let available = self.reader.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let end = available.iter().position(|b| *b == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            let room = self.cap - line.len();
            let fits = piece.len() <= room;
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            let consumed = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(consumed);
            match (end, fits) {
                (Some(_), true) => return Some(Line::Whole(line)),
                (Some(_), false) => return Some(Line::Cut(line)),
                (None, true) => {}
                (None, false) => {
                    skip_line(&mut self.reader).await?;
                    return Some(Line::Cut(line));
                }
            }
        }
    }
}

/// Skips the rest of a line; `None` at the end of the stream.
async fn skip_line(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<()> {
    loop {
        let available = reader.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
        let end = available.iter().position(|b| *b == b'\n');
        let consumed = end.map_or(available.len(), |end| end + 1);
        reader.consume(consumed);
        if end.is_some() {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestId;

    use super::*;

    async fn lines_of(text: &[u8], cap: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, cap);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_bounded_and_the_next_one_is_intact() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        let cut = |text: &str| Line::Cut(text.as_bytes().to_vec());
        assert_eq!(
            lines_of(b"ab\n\nabcd\nabcde\nx\nunfinished", 4).await,
            [whole("ab"), whole(""), whole("abcd"), cut("abcd"), whole("x"),]
        );
        let long = [vec![b'y'; 3 * READ_BYTES], b"\nz\n".to_vec()].concat();
        assert_eq!(lines_of(&long, 4).await, [cut("yyyy"), whole("z")]);
    }

    fn answered(decoded: Decoded) -> Answered {
        let Decoded::Message(message) = decoded else { panic!("{decoded:?}") };
        match message.into_result() {
            Some((Ok(_), Some(id))) => Answered::Answer(id),
            Some((Err(error), id)) if is_unreadable(&error) => Answered::Unreadable(id),
            answer => panic!("{answer:?}"),
        }
    }

    #[derive(Debug, PartialEq)]
    enum Answered {
        Unreadable(Option<RequestId>),
        Answer(RequestId),
    }

    #[tokio::test]
    async fn a_broken_answer_still_ends_its_call() {
        let whole = |text: &str| decode_now(Line::Whole(text.as_bytes().to_vec()));
        let id = RequestId::Number(4);
        let unreadable = Answered::Unreadable(Some(id.clone()));
        assert_eq!(answered(whole(r#"{"jsonrpc":"2.0","id":4,"error":"boom"}"#)), unreadable);
        assert_eq!(answered(whole(r#"{"jsonrpc":"2.0","id":4,"result":{"content":["#)), unreadable);
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":4,"result":{{"x":{}1{}}}}}"#, "[".repeat(90), "]".repeat(90));
        assert_eq!(answered(whole(&deep)), unreadable);
        let cut = Line::Cut(br#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"#.to_vec());
        assert_eq!(answered(decode_now(cut)), Answered::Answer(id));
        assert!(matches!(whole("Starting server on port 80"), Decoded::Nonsense { bytes: 26 }));
        assert!(matches!(whole("\r"), Decoded::Blank));
    }
}
