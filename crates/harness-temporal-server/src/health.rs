//! Whether a server answers: the health check of gRPC, over one HTTP/2 connection.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures::future::{Either, select};
use http::Request;
use tokio::{net::TcpStream, time::timeout};

/// How long one question may take.
const ASK_MAX: Duration = Duration::from_secs(2);
/// A gRPC message without content: the health of the whole server. One byte says "not compressed", four are the length.
const EVERYTHING: &[u8] = &[0, 0, 0, 0, 0];
/// A gRPC message with field 1, the status, set to 1: serving.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 8, 1];

/// Whether the server at this address says that it serves.
pub(crate) async fn serves(address: SocketAddr) -> bool {
    matches!(timeout(ASK_MAX, ask(address)).await, Ok(Some(answer)) if answer == SERVING)
}

/// The answer; `None` when there is none.
async fn ask(address: SocketAddr) -> Option<Vec<u8>> {
    let socket = TcpStream::connect(address).await.ok()?;
    let (requests, connection) = h2::client::handshake(socket).await.ok()?;
    let exchange = async {
        let mut requests = requests.ready().await.ok()?;
        let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .ok()?;
        let (response, mut body) = requests.send_request(request, false).ok()?;
        body.send_data(Bytes::from_static(EVERYTHING), true).ok()?;
        let mut body = response.await.ok()?.into_body();
        let mut answer = Vec::new();
        while answer.len() < SERVING.len() {
            answer.extend_from_slice(&body.data().await?.ok()?);
        }
        Some(answer)
    };
    match select(std::pin::pin!(exchange), std::pin::pin!(connection)).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => None,
    }
}
