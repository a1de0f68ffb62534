//! What happens at once. Each race is run many times, over both bindings and on several threads.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Caller, Frame, message, reply},
    server::{Server, start},
};

/// How often each race is run.
const REPETITIONS: usize = 500;
/// Requests that are under way together.
const AT_ONCE: usize = 10;

/// The nth of several callers; both bindings take part in every race.
fn caller(server: &Server, n: usize) -> Caller<'_> {
    server.caller(BOTH[n % BOTH.len()], "ada")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_first_messages_are_one_task_however_they_race() {
    let server = start().await;
    for round in 0..REPETITIONS {
        let message = message(&format!("m-{round}"), "finish");
        let send = |n| caller(&server, n).send(message.clone());
        let answers = join_all((0..AT_ONCE).map(send)).await;
        assert_eq!(answers[0]["status"]["state"], "TASK_STATE_COMPLETED");
        for answer in &answers {
            assert_eq!(answer, &answers[0], "round {round}");
        }
        assert_eq!(server.engine.started().len(), round + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_races_with_the_end_hears_of_it() {
    let server = start().await;
    for round in 0..REPETITIONS {
        let task = begin(&server, round, "finish").await;
        let subscribe = |n| {
            let request = caller(&server, n).request("SubscribeToTask", json!({"id": task["id"]}));
            async move {
                let response = request.send().await.unwrap();
                let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
                (content_type, response.text().await.unwrap())
            }
        };
        for (content_type, body) in join_all((0..BOTH.len()).map(subscribe)).await {
            if content_type == "text/event-stream" {
                let last = body.trim_end().rsplit("\n\n").next().unwrap();
                assert!(last.contains("TASK_STATE_COMPLETED"), "round {round}: {body}");
            } else {
                assert!(body.contains("UNSUPPORTED_OPERATION"), "round {round}: {body}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_race_with_the_end_are_answered_or_refused() {
    let server = start().await;
    for round in 0..REPETITIONS {
        let task = caller(&server, round).send(message(&format!("m-{round}"), "ask")).await;
        let send = |n: usize| {
            let text = if n == 0 { "finish" } else { "ask" };
            let message = reply(&format!("m-{round}-{n}"), text, &task);
            caller(&server, n).call("SendMessage", json!({"message": message}))
        };
        for (n, answer) in join_all((0..4).map(send)).await.into_iter().enumerate() {
            match answer {
                Ok(answer) => assert_eq!(answer["task"]["id"], task["id"]),
                Err(refusal) => {
                    assert_ne!(n, 0, "nothing ends the task before the message that asks for it");
                    assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION", "round {round}");
                }
            }
        }
        let ended = caller(&server, round).ok("GetTask", json!({"id": task["id"]})).await;
        assert_eq!(ended["status"]["state"], "TASK_STATE_COMPLETED", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_anywhere_goes_on_where_it_was() {
    let server = start().await;
    for round in 0..REPETITIONS {
        let hello = json!({"message": message(&format!("m-{round}"), "hello")});
        let mut stream = caller(&server, round).open("SendStreamingMessage", hello, None).await;
        let mut frames: Vec<Frame> = Vec::new();
        for _ in 0..=round % 4 {
            frames.push(stream.next().await.unwrap());
        }
        drop(stream);
        let id = json!({"id": frames[0].1["task"]["id"]});
        let last = frames.last().unwrap().0;
        let mut rest = caller(&server, round + 1).open("SubscribeToTask", id, Some(last)).await;
        frames.extend(rest.rest().await);
        let numbers: Vec<u64> = frames.iter().map(|frame| frame.0).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4], "round {round}");
        assert_eq!(frames[4].1["statusUpdate"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_is_seen_to_wait() {
    let server = start().await;
    for round in 0..REPETITIONS {
        let task = begin(&server, round, "ask").await;
        let id = json!({"id": task["id"]});
        let mut stream = caller(&server, round).open("SubscribeToTask", id, None).await;
        let first = stream.next().await.unwrap().1;
        let mut status = first["task"]["status"]["state"].clone();
        while status != "TASK_STATE_INPUT_REQUIRED" {
            let (_, event) = stream.next().await.expect("the stream ends after the question, not before");
            status = event["statusUpdate"]["status"]["state"].clone();
        }
    }
}

/// A task that has only begun.
async fn begin(server: &Server, round: usize, text: &str) -> Value {
    let params = json!({
        "message": message(&format!("m-{round}"), text), "configuration": {"returnImmediately": true}
    });
    caller(server, round).ok("SendMessage", params).await["task"].clone()
}
