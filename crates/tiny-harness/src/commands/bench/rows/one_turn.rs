//! A task of one turn, one after another: message in, finished task out, everything durable.

use super::super::{
    client::Client,
    figure::{Bar, Figure},
    lab::{Lab, ONE_TURN, Setup},
    load::{self, timed},
    parts,
};
use crate::failure::Failure;

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let cost = lab.one_turn().await?;
    let setup = Setup { name: "one-turn", script: ONE_TURN, lifecycle: "delegated", tools: false };
    let server = lab.serve(&setup).await?;
    let floor = lab.floor("one-turn", cost).await?;
    let mut client = Client::connect(server.address).await?;
    let mut bare_client = Client::connect(floor.address).await?;
    let task = async |number| timed(load::task(&mut client, format!("m{number}"))).await;
    let bare = async |_| timed(async { bare_client.post(parts::TASK, "").await.map(drop) }).await;
    let (times, least) = load::side_by_side(&lab.effort, task, bare).await?;
    server.stop().await?;
    floor.stop().await?;
    Ok(vec![
        times.figure("one-turn task", 50, Bar::Under(3.0), &least),
        times.figure("one-turn task", 99, Bar::Under(8.0), &least),
    ])
}
