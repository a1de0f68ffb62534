//! The database server for tests: started, stopped, started again, gone.

use harness_testkit::PostgresServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What the server answers to the question whether it speaks TLS: one letter.
async fn answer(port: u16) -> std::io::Result<u8> {
    let mut socket = TcpStream::connect((PostgresServer::HOST, port)).await?;
    socket.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await?;
    socket.read_u8().await
}

#[tokio::test]
async fn a_server_runs_until_it_is_dropped() {
    let Some(mut server) = PostgresServer::start().await else { return };
    let Some(other) = PostgresServer::start().await else { return };
    let port = server.port();
    assert_ne!(port, other.port());
    assert_eq!(answer(port).await.unwrap(), b'N', "it has no certificate");
    server.stop().await;
    assert!(answer(port).await.is_err());
    server.start_again().await;
    assert_eq!((server.port(), answer(port).await.unwrap()), (port, b'N'));
    drop(server);
    assert!(answer(port).await.is_err());
    assert_eq!(answer(other.port()).await.unwrap(), b'N', "the others are left alone");
}
