//! Tasks of one turn on an embedded Temporal: one after another, and with many in flight.

use std::{cell::Cell, path::PathBuf};

use serde_json::json;

use super::super::{
    client::Client,
    figure::{Bar, Figure},
    lab::{Lab, ONE_TURN, Setup},
    load::{self, timed},
};
use crate::{failure::Failure, output};

/// Tasks in flight under load.
const IN_FLIGHT: usize = 16;

/// Where the Temporal server keeps what it knows. Tasks are on disk both times.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    InMemory,
    OnDisk,
}

impl Kept {
    fn name(self) -> &'static str {
        match self {
            Self::InMemory => "in memory",
            Self::OnDisk => "on disk",
        }
    }

    fn persists(self) -> bool {
        match self {
            Self::InMemory => false,
            Self::OnDisk => true,
        }
    }
}

/// Nothing, and a line that says so, where there is no Temporal.
pub(super) async fn measure(lab: &Lab, kept: Kept) -> Result<Vec<Figure>, Failure> {
    let Some(binary) = binary() else {
        output::problem("not measured: there is no `temporal` on PATH, nor one that was fetched before");
        return Ok(Vec::new());
    };
    let name = format!("temporal-{}", kept.name().replace(' ', "-"));
    let setup = Setup { name: &name, script: ONE_TURN, lifecycle: "delegated", tools: false };
    let tables = format!(
        "[temporal]\nmode = \"embedded\"\n\n[temporal.embedded]\nbinary_path = {binary}\npersist = {persist}\n",
        binary = json!(binary.display().to_string()),
        persist = kept.persists(),
    );
    let server = lab.serve_with(&setup, &tables).await?;
    let mut client = Client::connect(server.address).await?;
    let task = async |number| timed(load::task(&mut client, format!("m{number}"))).await;
    let times = load::one_by_one(&lab.effort, task).await?;
    let mut clients = Client::several(server.address, IN_FLIGHT).await?;
    let next = Cell::new(0_u64);
    let task = async |client: &mut Client| {
        let number = next.replace(next.get() + 1);
        load::task(client, format!("load-{number}")).await
    };
    let reached = load::at_once(lab.effort.load_time, &mut clients, task).await?;
    server.stop().await?;
    let what = format!("one-turn task, Temporal {}", kept.name());
    Ok(vec![
        times.bare(&what, 50, Bar::Under(100.0)),
        Figure::new(format!("{what}, p99"), "ms", times.ms(99), None).samples(times.len()),
        Figure::new(
            format!("{what}, {IN_FLIGHT} in flight"),
            "tasks/s",
            reached.per_second(),
            Bar::Over(25.0),
        )
        .samples(reached.count),
    ])
}

#[cfg(feature = "temporal")]
fn binary() -> Option<PathBuf> {
    crate::harness::temporal::usual_binary().at_hand()
}

#[cfg(not(feature = "temporal"))]
fn binary() -> Option<PathBuf> {
    None
}
