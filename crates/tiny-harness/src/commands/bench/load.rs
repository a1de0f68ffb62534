//! Work for a server: one request after another, or many at once, for a bounded time.

use std::time::Duration;

use futures::future::try_join_all;
use tokio::time::Instant;

use super::{
    client::{Client, Say, expect},
    figure::Times,
    lab::Effort,
};
use crate::failure::Failure;

/// A whole task of one message.
pub(super) async fn task(client: &mut Client, message_id: String) -> Result<(), Failure> {
    let say = Say { message_id, text: "How are you?", task_id: None };
    expect(client.post("/", &say.and_wait()).await?, "TASK_STATE_COMPLETED").map(drop)
}

/// Times something that is done again and again; the argument counts the repetitions.
pub(super) async fn one_by_one(
    effort: &Effort,
    mut work: impl AsyncFnMut(usize) -> Result<Duration, Failure>,
) -> Result<Times, Failure> {
    let mut times = Vec::with_capacity(effort.samples);
    let mut number = 0;
    let begun = Instant::now();
    while number < effort.warm_up && begun.elapsed() < effort.samples_time / 4 {
        work(number).await?;
        number += 1;
    }
    let begun = Instant::now();
    while times.len() < effort.samples && begun.elapsed() < effort.samples_time {
        times.push(work(number).await?);
        number += 1;
    }
    Ok(Times::new(times))
}

/// How long something took.
pub(super) async fn timed(work: impl Future<Output = Result<(), Failure>>) -> Result<Duration, Failure> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed())
}

/// What a load came to.
pub(super) struct Throughput {
    pub(super) per_second: f64,
    pub(super) count: usize,
}

/// Every client does the work again and again; what ends after the warm-up and before the end counts. The arguments of
/// the work are the number of the client and of the repetition.
pub(super) async fn at_once(
    effort: &Effort,
    clients: Vec<Client>,
    work: impl AsyncFn(&mut Client, usize, usize) -> Result<(), Failure>,
) -> Result<Throughput, Failure> {
    let begun = Instant::now();
    let counts_from = begun + effort.load_time / 4;
    let end = counts_from + effort.load_time;
    let work = &work;
    let each = clients.into_iter().enumerate().map(|(place, mut client)| async move {
        let mut count = 0;
        for number in 0.. {
            work(&mut client, place, number).await?;
            let now = Instant::now();
            if now > end {
                break;
            }
            count += usize::from(now > counts_from);
        }
        Ok::<usize, Failure>(count)
    });
    let count = try_join_all(each).await?.into_iter().sum();
    Ok(Throughput { per_second: count as f64 / effort.load_time.as_secs_f64(), count })
}
