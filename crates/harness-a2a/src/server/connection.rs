//! Connections: accepted up to a limit, owned by a task group, drained when the server stops.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use harness_ports::TaskGroup;
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, warn};

/// Connections at once; further ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 8_192;
/// Time for the head of a request, and how long an idle connection is kept.
const HEAD_TIME: Duration = Duration::from_secs(75);
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 65_536;
/// Pause after the listener failed, which is nearly always a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a request knows about the connection it came by.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// Cancelled when the server stops: streams end and waits are given up.
    pub(super) stop: CancellationToken,
}

/// Serves connections until `stop` is cancelled, then returns; nothing is accepted after that. The connections live in
/// `group`: requests that are being answered are finished, streams end after the event they are at (clients resume),
/// and the owner's `group.shutdown` waits for them for as long as it likes.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken, group: TaskGroup) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accept = async {
            let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = accept => accepted,
        };
        match accepted {
            Some((permit, Ok((stream, peer)))) => {
                let connection = Connection { peer, stop: stop.clone() };
                group.spawn(drive(stream, connection, router.clone(), permit));
            }
            Some((_, Err(error))) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None => return,
        }
    }
}

/// Serves one connection to its end. The permit is given back when the connection is gone.
async fn drive(stream: TcpStream, connection: Connection, router: Router, _permit: OwnedSemaphorePermit) {
    // Events are small and wanted at once.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot set TCP_NODELAY");
    }
    let (stop, peer) = (connection.stop.clone(), connection.peer);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "connection ended with an error");
    }
}
