//! The first event of a stream that a new message opens.

use std::time::Duration;

use tokio::time::Instant;

use super::super::{
    client::{Client, Say, expect},
    figure::{Bar, Figure},
    lab::{Lab, ONE_TURN, Setup},
    load, parts,
};
use crate::failure::Failure;

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let cost = lab.one_turn().await?;
    let setup = Setup { name: "first-event", script: ONE_TURN, lifecycle: "delegated", tools: false };
    let server = lab.serve(&setup).await?;
    let floor = lab.floor("first-event", cost).await?;
    let mut client = Client::connect(server.address).await?;
    let mut bare_client = Client::connect(floor.address).await?;
    let first = async |number| {
        let say = Say { message_id: format!("m{number}"), text: "How are you?", task_id: None };
        let (time, event) = first_event(&mut client, "/", &say.and_stream()).await?;
        expect(event, "TASK_STATE_SUBMITTED")?;
        Ok(time)
    };
    let bare = async |_| Ok(first_event(&mut bare_client, parts::FIRST, "").await?.0);
    let (times, least) = load::side_by_side(&lab.effort, first, bare).await?;
    server.stop().await?;
    floor.stop().await?;
    Ok(vec![
        times.figure("first event of a stream", 50, Bar::Under(1.5), &least),
        times.figure("first event of a stream", 99, Bar::Under(5.0), &least),
    ])
}

/// The first event and how long it took; the rest of the stream is read and not timed.
async fn first_event(client: &mut Client, path: &str, body: &str) -> Result<(Duration, String), Failure> {
    let begun = Instant::now();
    client.open(path, body).await?;
    let event = client.event().await?;
    let time = begun.elapsed();
    client.drain().await?;
    Ok((time, event.unwrap_or_default()))
}
