//! Stopping a server with a Temporal of its own is never a cancel, whatever stopped it.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    crash_drain::Shop,
    temporal_rig::{embedded_tables, is_sound},
};

/// A second of grace for what is at work, and two for everything else.
const LEAVES_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_terminated_server_leaves_in_time_and_its_task_goes_on() {
    let Some(tables) = embedded_tables() else { return };
    let shop = Shop::with(&tables);
    let (server, task) = shop.busy().await;
    let began = Instant::now();
    let ended = server.stop().await;
    let took = began.elapsed();
    println!("stop: embedded, a tool at work, a grace of 1 s: {} ms", took.as_millis());
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{ended:?}");
    assert!(took < LEAVES_WITHIN, "{took:?}: {}", ended.stderr);
    is_sound(&ended.stderr);
    shop.goes_on(&task).await;
}

#[tokio::test]
async fn the_task_of_a_killed_server_goes_on() {
    let Some(tables) = embedded_tables() else { return };
    let shop = Shop::with(&tables);
    let (server, task) = shop.busy().await;
    server.kill().await;
    shop.goes_on(&task).await;
}
