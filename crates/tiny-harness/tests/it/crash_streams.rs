//! Subscribers of an answer that is being written, and a server that dies in the middle of it.

use serde_json::{Value, json};

use crate::{
    api::{BOTH, Event, chunk, message},
    rig::Rig,
};

/// Chunks of the answer.
const CHUNKS: usize = 60;
/// Chunks that the first client reads before it goes away.
const READ_FIRST: usize = 10;

/// An answer of 60 chunks, written over a second and a half.
pub(crate) fn script() -> String {
    let chunks: Vec<String> = (1..=CHUNKS).map(|n| format!("c{n:02} ")).collect();
    format!("[[turns]]\nchunks = {chunks:?}\nchunk_delay_ms = 25\n")
}

pub(crate) fn whole_text() -> String {
    (1..=CHUNKS).map(|n| format!("c{n:02} ")).collect()
}

pub(crate) fn text(events: &[Event]) -> String {
    events.iter().filter_map(|(_, event)| chunk(event)).collect()
}

/// The text of a task's only artifact.
fn shown(task: &Value) -> String {
    let parts = task["artifacts"][0]["parts"].as_array().unwrap();
    parts.iter().map(|part| part["text"].as_str().unwrap()).collect()
}

/// Numbers follow one another, every chunk but the first appends, only the last is marked, the status comes last.
pub(crate) fn check(events: &[Event]) {
    for pair in events.windows(2) {
        assert_eq!(pair[1].0, pair[0].0 + 1, "{pair:?}");
    }
    let (last, chunks) = events.split_last().unwrap();
    assert_eq!(last.1["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    for (at, (_, event)) in chunks.iter().enumerate() {
        let update = &event["artifactUpdate"];
        assert_eq!(update["append"], true, "{event}");
        assert_eq!(update["lastChunk"] == true, at + 1 == chunks.len(), "{event}");
    }
}

#[tokio::test]
async fn no_subscriber_misses_a_chunk_or_sees_one_twice() {
    for binding in BOTH {
        let rig = Rig::new(&script());
        let server = rig.serve().await;
        let ada = server.api(binding, "ada");
        let params = json!({"message": message("m-1", "go on")});
        let mut stream = ada.open("SendStreamingMessage", params, None).await;
        let (mut before, mut task) = (Vec::new(), None);
        while text(&before).len() < READ_FIRST * "c01 ".len() {
            let (seq, event) = stream.next().await.unwrap();
            task = task.or_else(|| event["task"]["id"].as_str().map(str::to_owned));
            before.push((seq, event));
        }
        drop(stream);
        let task = task.unwrap();
        server.kill().await;

        let server = rig.serve().await;
        let ada = server.api(binding, "ada");
        let last = before.last().unwrap().0;
        let (resumed, fresh, another) = (
            ada.subscribe(&task, Some(last)).await,
            ada.subscribe(&task, None).await,
            server.ada().subscribe(&task, None).await,
        );
        let (resumed, fresh, another) = tokio::join!(resumed.rest(), fresh.rest(), another.rest());

        // The client that knows where it was gets exactly the rest.
        assert_eq!(resumed[0].0, last + 1);
        check(&resumed);
        assert_eq!(text(&before) + &text(&resumed), whole_text());
        // Clients that know nothing get the task as it is now, then the same rest.
        for fresh in [fresh, another] {
            let (picture, rest) = fresh.split_first().unwrap();
            assert_eq!(picture.1["task"]["status"]["state"], "TASK_STATE_WORKING");
            assert_eq!(rest[0].0, picture.0 + 1);
            check(rest);
            assert_eq!(shown(&picture.1["task"]) + &text(rest), whole_text());
            assert!(resumed.ends_with(rest), "every subscriber sees the same events");
        }
        // And so does everybody who comes later.
        assert_eq!(shown(&ada.task(&task).await), whole_text());
        assert_eq!(ada.subscribe(&task, Some(last)).await.rest().await, resumed);
    }
}
