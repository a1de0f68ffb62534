//! From the moment an event is durable to the moment a subscriber has it.

use std::time::Duration;

use futures::future::{try_join, try_join_all};
use serde_json::{Value, json};

use super::super::{
    child::Child,
    client::{Client, Say, expect, rpc},
    cost,
    figure::{Bar, Figure, Times},
    lab::{Lab, Setup},
    parts::{self, monotonic_ns},
};
use crate::failure::Failure;

/// The model thinks long enough for every subscriber to have the event before it, so that the newest commit is the one
/// that made it durable.
const SLOW_MODEL: &str = "[[turns]]\nwhen = { text_equals = \"many\" }\ntext = \"Hello.\"\ndelay_ms = 400\n\n\
    [[turns]]\ntext = \"Hello.\"\ndelay_ms = 15\n";
/// Subscribers of the crowd.
const MANY: usize = 1_000;
/// The event that is waited for.
const WORKING: &str = "TASK_STATE_WORKING";

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let (one, many) = lab.effort.wake_rounds;
    let setup = Setup { name: "wake-up", script: SLOW_MODEL, lifecycle: "conversation", tools: false };
    let mut server = lab.serve_stamped(&setup).await?;
    let alone = woken(&mut server, "one", 1, one).await?;
    let crowd = woken(&mut server, "many", MANY, many).await?;
    server.stop().await?;

    let floor = lab.floor("wake-up", lab.one_turn().await?).await?;
    let least_alone = floor_woken(&floor, 1, one).await?;
    let least_crowd = floor_woken(&floor, MANY, many).await?;
    floor.stop().await?;
    Ok(vec![
        alone.figure("wake-up of 1 subscriber", 99, Bar::Under(2.0), &least_alone),
        crowd.figure("wake-up of 1,000 subscribers", 99, Bar::Under(30.0), &least_crowd),
    ])
}

/// Rounds of: everybody subscribes, something is said, everybody hears of it, the turn ends.
async fn woken(server: &mut Child, text: &str, subscribers: usize, rounds: usize) -> Result<Times, Failure> {
    let mut speaker = Client::connect(server.address).await?;
    let task_id = begin(&mut speaker, text).await?;
    let subscribe = rpc("SubscribeToTask", &json!({"id": task_id}));
    let mut clients = Client::several(server.address, subscribers).await?;
    let mut times = Vec::new();
    for round in 0..=rounds {
        try_join_all(clients.iter_mut().map(|client| async {
            client.open("/", &subscribe).await?;
            // The picture of the task: from here on the subscriber is live.
            client.event_with("TASK_STATE_INPUT_REQUIRED").await
        }))
        .await?;
        let say = Say { message_id: format!("{text}-{round}"), text, task_id: Some(&task_id) };
        let said = say.and_leave();
        let heard = try_join_all(clients.iter_mut().map(|client| async {
            client.event_with(WORKING).await?;
            Ok::<u64, Failure>(monotonic_ns())
        }));
        let (_, heard) = try_join(speaker.post("/", &said), heard).await?;
        let durable = cost::stamp(server).await?.at_ns;
        try_join_all(clients.iter_mut().map(Client::drain)).await?;
        // The first round is a rehearsal.
        if round > 0 {
            times.extend(since(durable, &heard)?);
        }
    }
    Ok(Times::new(times))
}

/// A conversation that has had its first turn.
async fn begin(client: &mut Client, text: &str) -> Result<String, Failure> {
    let say = Say { message_id: format!("{text}-first"), text, task_id: None };
    let answer = expect(client.post("/", &say.and_wait()).await?, "TASK_STATE_INPUT_REQUIRED")?;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    let id = answer.pointer("/result/task/id").and_then(Value::as_str);
    id.map(str::to_owned).ok_or_else(|| Failure::general("the answer names no task"))
}

async fn floor_woken(floor: &Child, subscribers: usize, rounds: usize) -> Result<Times, Failure> {
    let mut speaker = Client::connect(floor.address).await?;
    let mut clients = Client::several(floor.address, subscribers).await?;
    let mut times = Vec::new();
    for round in 0..=rounds {
        try_join_all(clients.iter_mut().map(|client| async {
            client.open(parts::FOLLOW, "").await?;
            client.event_with("begun").await
        }))
        .await?;
        let heard = try_join_all(clients.iter_mut().map(|client| async {
            client.event_with("x").await?;
            Ok::<u64, Failure>(monotonic_ns())
        }));
        let (durable, heard) = try_join(speaker.post(parts::EVENT, ""), heard).await?;
        try_join_all(clients.iter_mut().map(Client::drain)).await?;
        if round > 0 {
            let durable = durable.parse().map_err(|_| Failure::general("the floor gives no time"))?;
            times.extend(since(durable, &heard)?);
        }
    }
    Ok(Times::new(times))
}

fn since(durable_ns: u64, heard: &[u64]) -> Result<Vec<Duration>, Failure> {
    let times = heard.iter().map(|at| at.checked_sub(durable_ns).map(Duration::from_nanos));
    times.collect::<Option<_>>().ok_or_else(|| {
        Failure::general(
            "the turn ended before every subscriber had heard of its beginning; the machine is too busy",
        )
    })
}
