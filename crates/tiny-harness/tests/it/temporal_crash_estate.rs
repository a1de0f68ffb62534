//! Two servers and two workers over one database and one Temporal: whoever is asked shows what whoever works does.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::{join, join_all};
use serde_json::Value;

use crate::{
    api::{Api, message, reply, state, words},
    rig::{Rig, until},
    temporal_rig::{Activities, Estate, begins_none_of, model_calls, percentile},
};

/// Three calls, one after the other, then an answer.
const SCRIPT: &str = r#"
[[turns]]
when = { asked = "odd/tools.read", last_is = "user" }
text = "Once more?"

[[turns]]
when = { turn = 4 }
text = "Read three times."

[[turns]]
calls = [{ name = "odd/tools.read", arguments = {} }]
"#;
/// Tasks whose events are timed.
const TIMED: usize = 40;
/// Tasks that are under way when a worker dies.
const UNDER_WAY: usize = 8;

#[tokio::test]
async fn a_server_shows_what_workers_of_another_do() {
    let Some(estate) = Estate::over(Rig::new(SCRIPT).adverse("plain")).await else { return };
    let (one, other) = join(estate.server(), estate.server()).await;
    let workers = join(estate.worker(), estate.worker()).await;
    let (one_api, other_api) = (one.ada(), other.ada());
    let mut late = Vec::new();
    for number in 0..TIMED {
        late.extend(timed(&one_api, &other_api, number).await);
    }
    let both = [&workers.0, &workers.1].iter().all(|worker| !model_calls(&worker.log()).is_empty());
    assert!(both, "both work");
    println!(
        "from the time of an event to its arrival on a stream of another server: p50 {} ms, p99 {} ms, n {}",
        percentile(&mut late, 50),
        percentile(&mut late, 99),
        late.len()
    );
    workers.0.stop().await;
    workers.1.stop().await;
    for server in [one, other] {
        assert_eq!(server.stop().await.code, Some(0));
    }
}

/// A task of one server, watched on the other from its first event to its last: how late each of them is.
async fn timed(sender: &Api, watcher: &Api, number: usize) -> Vec<Duration> {
    let task = sender.send_off(message(&format!("t-{number}"), "read")).await;
    let mut stream = watcher.subscribe(task["id"].as_str().unwrap(), Some(0)).await;
    let (mut late, mut last, mut numbers) = (Vec::new(), Value::Null, Vec::new());
    while let Some((seq, event)) = stream.next().await {
        numbers.push(seq);
        if let Some(at) = event["statusUpdate"]["status"]["timestamp"].as_str() {
            late.push(since(at));
        }
        last = event;
    }
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{last}");
    late
}

/// Time since this moment of the day, which is written as `2026-01-02T03:04:05.678Z`.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn since(at: &str) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_of_day = f64::from(u32::try_from(now.as_millis() % 86_400_000).unwrap()) / 1_000.0;
    let time = at.split_once('T').unwrap().1.strip_suffix('Z').unwrap();
    let parts: Vec<f64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    let of_day = (parts[0] * 60.0 + parts[1]) * 60.0 + parts[2];
    Duration::from_secs_f64((now_of_day - of_day).max(0.0))
}

#[tokio::test]
async fn the_end_of_either_worker_loses_nothing() {
    let Some(estate) = Estate::over(Rig::new(SCRIPT).adverse("plain").conversations()).await else { return };
    let (one, other) = join(estate.server(), estate.server()).await;
    let workers = join(estate.worker(), estate.worker()).await;
    let mut workers = [Some(workers.0), Some(workers.1)];
    let (one_api, other_api) = (one.ada(), other.ada());
    let mut tasks: Vec<Value> = Vec::new();
    for dying in 0..2 {
        estate.rig.hold("read");
        let calls = estate.rig.called("read");
        let sends = (0..UNDER_WAY).map(|n| one_api.send_off(message(&format!("m-{dying}-{n}"), "read")));
        tasks = join_all(sends).await;
        until("all of them wait in a tool", async || estate.rig.called("read") == calls + UNDER_WAY).await;
        let recorded: Activities = estate.recorded();
        workers[dying].take().unwrap().kill().await;
        let begun = tokio::time::Instant::now();
        estate.rig.release("read");
        for task in &tasks {
            let task = other_api.task_in(task["id"].as_str().unwrap(), "INPUT_REQUIRED").await;
            assert_eq!(words(&task), "Read three times.", "{task}");
        }
        crate::temporal_rig::recovered(&format!("worker {dying} of two killed, {UNDER_WAY} tasks"), begun);
        let left = workers[1 - dying].as_ref().unwrap();
        let since_then = left.log();
        assert!(!model_calls(&since_then).is_empty());
        workers[dying] = Some(estate.worker().await);
        begins_none_of(&workers[dying].as_ref().unwrap().log(), &recorded);
    }
    let more = one_api.send(reply("m-more", "again", &tasks[0])).await;
    assert_eq!(state(&more), "INPUT_REQUIRED", "{more}");
    for worker in workers.into_iter().flatten() {
        worker.stop().await;
    }
    for server in [one, other] {
        assert_eq!(server.stop().await.code, Some(0));
    }
}
