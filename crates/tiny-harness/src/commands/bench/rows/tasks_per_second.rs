//! Tasks of one turn with many in flight.

use std::{cell::Cell, time::Duration};

use super::super::{
    client::Client,
    figure::{Bar, Figure},
    lab::{Lab, ONE_TURN, Setup},
    load::{self, Throughput},
    parts,
};
use crate::failure::Failure;

/// Tasks in flight, and how many a second there should be.
const LOADS: [(usize, f64); 2] = [(16, 2_000.0), (64, 4_000.0)];
/// Product and floor are loaded turn and turn about, so often.
const SLICES: u32 = 3;

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for (in_flight, bar) in LOADS {
        figures.extend(one_load(lab, in_flight, bar).await?);
    }
    Ok(figures)
}

async fn one_load(lab: &Lab, in_flight: usize, bar: f64) -> Result<[Figure; 2], Failure> {
    let cost = lab.one_turn().await?;
    let name = format!("load-{in_flight}");
    let setup = Setup { name: &name, script: ONE_TURN, lifecycle: "delegated", tools: false };
    let (server, floor) = (lab.serve(&setup).await?, lab.floor(&name, cost).await?);
    let mut clients = Client::several(server.address, in_flight).await?;
    let mut bare_clients = Client::several(floor.address, in_flight).await?;
    let next = Cell::new(0_u64);
    let task = async |client: &mut Client| {
        let number = next.replace(next.get() + 1);
        load::task(client, format!("m{number}")).await
    };
    let bare = async |client: &mut Client| client.post(parts::TASK, "").await.map(drop);
    let (cpu, bare_cpu) = (server.cpu_time()?, floor.cpu_time()?);
    let (mut reached, mut most) = (Throughput::default(), Throughput::default());
    for _ in 0..SLICES {
        reached = reached.and(load::at_once(lab.effort.load_time / SLICES, &mut clients, task).await?);
        most = most.and(load::at_once(lab.effort.load_time / SLICES, &mut bare_clients, bare).await?);
    }
    let (cpu, bare_cpu) = (server.cpu_time()? - cpu, floor.cpu_time()? - bare_cpu);
    server.stop().await?;
    floor.stop().await?;
    let what = format!("one-turn tasks, {in_flight} in flight");
    Ok([
        Figure::new(what, "tasks/s", reached.per_second(), Bar::Over(bar))
            .floor(most.per_second())
            .samples(reached.count),
        Figure::new(format!("processor time of each, {in_flight} in flight"), "ms", each(cpu, reached), None)
            .floor(each(bare_cpu, most))
            .samples(reached.ends),
    ])
}

/// Milliseconds of one of them.
fn each(cpu: Duration, done: Throughput) -> f64 {
    cpu.as_secs_f64() * 1_000.0 / done.ends as f64
}
