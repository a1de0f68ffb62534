//! Running a demo server over a pair of streams.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use rmcp::{ServerHandler, serve_server};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::{DemoOptions, orders::Orders, policy::Policy};

/// Why a demo server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The client did not greet as an MCP client does, or went away before it did.
    #[error("the client did not start an MCP session")]
    NoSession,
    /// The server stopped by a fault of its own.
    #[error("the server failed")]
    Failed,
}

/// Serves the order tools until the input ends.
pub async fn serve_orders<R, W>(options: DemoOptions, input: R, output: W) -> Result<(), DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let stop = CancellationToken::new();
    serve(Orders::new(&options, stop.clone()), Input { stream: input, ended: stop }, output).await
}

/// Serves the policy tool until the input ends.
pub async fn serve_policy<R, W>(input: R, output: W) -> Result<(), DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve(Policy, Input { stream: input, ended: CancellationToken::new() }, output).await
}

async fn serve<H, R, W>(handler: H, input: Input<R>, output: W) -> Result<(), DemoError>
where
    H: ServerHandler,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let session = serve_server(handler, (input, output)).await.map_err(|_| DemoError::NoSession)?;
    session.waiting().await.map(drop).map_err(|_| DemoError::Failed)
}

/// A stream that tells when it ends, so that calls in progress need not wait for a client that is gone.
struct Input<R> {
    stream: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(result) = &read
            && (result.is_err() || buf.filled().len() == before)
        {
            self.ended.cancel();
        }
        read
    }
}
