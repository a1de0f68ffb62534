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

/// Times two things turn and turn about, so that whatever else the machine does meets both alike.
pub(super) async fn side_by_side(
    effort: &Effort,
    mut work: impl AsyncFnMut(usize) -> Result<Duration, Failure>,
    mut bare: impl AsyncFnMut(usize) -> Result<Duration, Failure>,
) -> Result<(Times, Times), Failure> {
    let mut least = Vec::with_capacity(effort.samples);
    let both = async |number| {
        let time = work(number).await?;
        least.push(bare(number).await?);
        Ok(time)
    };
    let times = one_by_one(effort, both).await?;
    let warm_up = least.len() - times.len();
    Ok((times, Times::new(least.split_off(warm_up))))
}

/// How long something took.
pub(super) async fn timed(work: impl Future<Output = Result<(), Failure>>) -> Result<Duration, Failure> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed())
}

/// What a load came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throughput {
    /// Ends that count, in so much time.
    pub(super) count: usize,
    pub(super) time: Duration,
    /// All ends.
    pub(super) ends: usize,
}

impl Throughput {
    pub(super) fn per_second(self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }

    /// Both loads together.
    pub(super) fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, time: self.time + other.time, ends: self.ends + other.ends }
    }
}

/// Every client does the work again and again for some time; what ends during its first quarter does not count.
pub(super) async fn at_once(
    time: Duration,
    clients: &mut [Client],
    work: impl AsyncFn(&mut Client) -> Result<(), Failure>,
) -> Result<Throughput, Failure> {
    let begun = Instant::now();
    let (counts_from, end) = (begun + time / 4, begun + time);
    let work = &work;
    let each = clients.iter_mut().map(|client| async move {
        let (mut count, mut ends) = (0, 0);
        while Instant::now() < end {
            work(client).await?;
            ends += 1;
            let now = Instant::now();
            count += usize::from(now > counts_from && now < end);
        }
        Ok::<_, Failure>((count, ends))
    });
    let mut sum = Throughput { time: end - counts_from, ..Throughput::default() };
    for (count, ends) in try_join_all(each).await? {
        sum.count += count;
        sum.ends += ends;
    }
    Ok(sum)
}
