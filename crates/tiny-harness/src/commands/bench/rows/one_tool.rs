//! A task of two turns with a call of a tool in another process between them.

use super::super::{
    client::Client,
    figure::{Bar, Figure},
    lab::{Lab, ONE_TOOL, Setup},
    load::{self, timed},
    parts,
};
use crate::failure::Failure;

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let cost = lab.one_tool().await?;
    let setup = Setup { name: "one-tool", script: ONE_TOOL, lifecycle: "delegated", tools: true };
    let server = lab.serve(&setup).await?;
    let floor = lab.floor("one-tool", cost).await?;
    let mut client = Client::connect(server.address).await?;
    let mut bare_client = Client::connect(floor.address).await?;
    let task = async |number| timed(load::task(&mut client, format!("m{number}"))).await;
    let bare = async |_| timed(async { bare_client.post(parts::ECHO, "").await.map(drop) }).await;
    let (times, least) = load::side_by_side(&lab.effort, task, bare).await?;
    server.stop().await?;
    floor.stop().await?;
    Ok(vec![times.figure("two-turn task with a tool", 50, Bar::Under(6.0), &least)])
}
