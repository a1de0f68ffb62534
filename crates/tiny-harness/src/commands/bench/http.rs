//! As much HTTP/1.1 as measuring needs, for both sides: the cost of the client is part of every number, so there is
//! little of it.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// Bytes of one line of a head or of a chunk size.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Lines of a head.
const HEAD_LINES_MAX: usize = 64;
/// Bytes of one body or chunk.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One connection.
pub(super) struct Wire {
    stream: BufReader<TcpStream>,
}

/// The head of a request or of an answer.
pub(super) struct Head {
    /// Its first line.
    pub(super) first: String,
    /// Bytes of the body; `None` when it comes in chunks.
    pub(super) length: Option<usize>,
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// The next head; `None` when the other side has closed the connection.
    pub(super) async fn head(&mut self) -> io::Result<Option<Head>> {
        let Some(first) = self.line().await? else { return Ok(None) };
        let mut length = Some(0);
        for _ in 0..HEAD_LINES_MAX {
            let line = self.line().await?.ok_or_else(|| broken("a head ended early"))?;
            if line.is_empty() {
                return Ok(Some(Head { first, length }));
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(broken("a header has no name"));
            };
            if name.eq_ignore_ascii_case("content-length") {
                let bytes = value.trim().parse().map_err(|_| broken("a length is no number"))?;
                length = Some(bytes);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = None;
            }
        }
        Err(broken("a head has too many lines"))
    }

    /// A body of known length.
    pub(super) async fn sized(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        if bytes > BODY_BYTES_MAX {
            return Err(broken("a body is too large"));
        }
        let mut body = vec![0; bytes];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// The next chunk of a body; `None` after the last one.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line().await?.ok_or_else(|| broken("a chunked body ended early"))?;
        let bytes = usize::from_str_radix(line.trim(), 16).map_err(|_| broken("a chunk has no size"))?;
        let chunk = self.sized(bytes).await?;
        match self.line().await?.as_deref() {
            Some("") => Ok((bytes > 0).then_some(chunk)),
            Some(_) | None => Err(broken("a chunk has no end")),
        }
    }

    async fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = (&mut self.stream).take(LINE_BYTES_MAX).read_line(&mut line).await?;
        if read == 0 {
            return Ok(None);
        }
        let text = line.strip_suffix('\n').ok_or_else(|| broken("a line has no end"))?;
        Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
    }
}

/// A chunk with its frame.
pub(super) fn framed(chunk: &str) -> String {
    format!("{:x}\r\n{chunk}\r\n", chunk.len())
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Wire, Wire) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = Wire::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        (near, Wire::new(far).unwrap())
    }

    #[tokio::test]
    async fn both_kinds_of_bodies_arrive_whole_on_one_connection() {
        let (mut near, mut far) = pair().await;
        far.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await.unwrap();
        let chunks = format!("{}{}0\r\n\r\n", framed("data: 1\n\n"), framed("data: 2\n\n"));
        far.write(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}").as_bytes())
            .await
            .unwrap();
        drop(far);
        let head = near.head().await.unwrap().unwrap();
        assert_eq!((head.first.as_str(), head.length), ("HTTP/1.1 200 OK", Some(5)));
        assert_eq!(near.sized(5).await.unwrap(), b"hello");
        assert_eq!(near.head().await.unwrap().unwrap().length, None);
        assert_eq!(near.chunk().await.unwrap().unwrap(), b"data: 1\n\n");
        assert_eq!(near.chunk().await.unwrap().unwrap(), b"data: 2\n\n");
        assert_eq!(near.chunk().await.unwrap(), None);
        assert!(near.head().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_ends_early_is_an_error_and_no_answer() {
        for text in ["HTTP/1.1 200 OK\r\ncontent-len", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nx\r\n\r\n"]
        {
            let (mut near, mut far) = pair().await;
            far.write(text.as_bytes()).await.unwrap();
            drop(far);
            assert!(near.head().await.is_err(), "{text:?}");
        }
    }
}
