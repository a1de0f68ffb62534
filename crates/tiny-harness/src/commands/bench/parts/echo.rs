//! Answers every line with itself.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

use crate::failure::Failure;

pub(super) async fn run() -> Result<(), Failure> {
    let (mut from, mut to) = (BufReader::new(stdin()), stdout());
    let mut line = String::new();
    while let Ok(1..) = from.read_line(&mut line).await {
        if to.write_all(line.as_bytes()).await.is_err() || to.flush().await.is_err() {
            break;
        }
        line.clear();
    }
    Ok(())
}
