//! From the start of the process to the first answer.

use super::super::{
    child::Child,
    client::{Client, expect},
    cost::Cost,
    figure::{Bar, Figure, Times},
    lab::{Lab, ONE_TURN, Setup},
};
use crate::failure::Failure;

const CARD: &str = "/.well-known/agent-card.json";

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let setup = Setup { name: "start", script: ONE_TURN, lifecycle: "delegated", tools: false };
    let (mut times, mut least) = (Vec::new(), Vec::new());
    for _ in 0..lab.effort.starts {
        let server = lab.serve(&setup).await?;
        times.push(answered(&server, "protocolVersion").await?);
        server.stop().await?;
        let floor = lab.floor("start", Cost { commits: 1, bytes: 1 }).await?;
        least.push(answered(&floor, "ready").await?);
        floor.stop().await?;
    }
    let (times, least) = (Times::new(times), Times::new(least));
    Ok(vec![times.figure("start to serving", 50, Bar::Under(100.0), &least)])
}

async fn answered(server: &Child, text: &str) -> Result<std::time::Duration, Failure> {
    let mut client = Client::connect(server.address).await?;
    expect(client.get(CARD).await?, text)?;
    Ok(server.begun.elapsed())
}
