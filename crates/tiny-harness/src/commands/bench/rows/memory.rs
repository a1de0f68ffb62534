//! Memory of a server that has nothing to do, and what tasks that wait add to it.

use super::super::{
    client::{Client, Say, expect},
    cost::Cost,
    figure::{Bar, Figure},
    lab::{Lab, ONE_TURN, Setup},
};
use crate::failure::Failure;

/// Tasks that are parked at the same time.
const IN_FLIGHT: usize = 64;
const CARD: &str = "/.well-known/agent-card.json";

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let floor = lab.floor("memory", Cost { commits: 1, bytes: 1 }).await?;
    Client::connect(floor.address).await?.get(CARD).await?;
    let least = floor.resident_bytes()?;
    floor.stop().await?;

    let setup = Setup { name: "memory", script: ONE_TURN, lifecycle: "conversation", tools: false };
    let server = lab.serve(&setup).await?;
    Client::connect(server.address).await?.get(CARD).await?;
    let idle = server.resident_bytes()?;
    park(Client::several(server.address, IN_FLIGHT).await?, lab.effort.parked).await?;
    let full = server.resident_bytes()?;
    server.stop().await?;
    let count = lab.effort.parked;
    let per_task = full.saturating_sub(idle) as f64 / count as f64 / 1_024.0;
    Ok(vec![
        Figure::new("resident memory, idle", "MB", megabytes(idle), Bar::Under(25.0)).floor(megabytes(least)),
        Figure::new(format!("resident memory per parked task of {count}"), "kB", per_task, Bar::Under(4.0))
            .samples(count),
    ])
}

/// Begins so many conversations; each has had its answer and waits.
async fn park(clients: Vec<Client>, count: usize) -> Result<(), Failure> {
    let each = clients.into_iter().enumerate().map(|(place, mut client)| async move {
        for number in (place..count).step_by(IN_FLIGHT) {
            let say = Say { message_id: format!("m{number}"), text: "How are you?", task_id: None };
            expect(client.post("/", &say.and_wait()).await?, "TASK_STATE_INPUT_REQUIRED")?;
        }
        Ok::<(), Failure>(())
    });
    futures::future::try_join_all(each).await.map(drop)
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
