//! Tasks of one turn with many in flight.

use super::super::{
    client::Client,
    figure::{Bar, Figure},
    lab::{Lab, ONE_TURN, Setup},
    load, parts,
};
use crate::failure::Failure;

/// Tasks in flight, and how many a second there should be.
const LOADS: [(usize, f64); 2] = [(16, 2_000.0), (64, 4_000.0)];

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let cost = lab.one_turn().await?;
    let mut figures = Vec::new();
    for (in_flight, bar) in LOADS {
        let name = format!("load-{in_flight}");
        let setup = Setup { name: &name, script: ONE_TURN, lifecycle: "delegated", tools: false };
        let server = lab.serve(&setup).await?;
        let clients = Client::several(server.address, in_flight).await?;
        let task = async |client: &mut Client, place: usize, number: usize| {
            load::task(client, format!("m{place}-{number}")).await
        };
        let reached = load::at_once(&lab.effort, clients, task).await?;
        server.stop().await?;

        let floor = lab.floor(&name, cost).await?;
        let clients = Client::several(floor.address, in_flight).await?;
        let bare = async |client: &mut Client, _, _| client.post(parts::TASK, "").await.map(drop);
        let most = load::at_once(&lab.effort, clients, bare).await?;
        floor.stop().await?;
        let figure = Figure::new(
            format!("one-turn tasks, {in_flight} in flight"),
            "tasks/s",
            reached.per_second,
            Bar::Over(bar),
        );
        figures.push(figure.floor(most.per_second).samples(reached.count));
    }
    Ok(figures)
}
