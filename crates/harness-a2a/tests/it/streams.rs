//! SendStreamingMessage and SubscribeToTask: order, ends, resumption.

use std::time::Duration;

use serde_json::json;

use crate::{
    api::{BOTH, brief, message, outline, reply},
    server::start,
};

#[tokio::test]
async fn a_new_task_is_told_from_its_creation_to_the_end_of_its_turn() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let hello = json!({"message": message(&format!("{binding:?}-1"), "hello")});
        let expected = [
            "0 task SUBMITTED",
            "1 statusUpdate WORKING",
            "2 artifactUpdate Hello, ",
            "3 artifactUpdate world.",
            "4 statusUpdate INPUT_REQUIRED",
        ];
        let frames = ada.stream("SendStreamingMessage", hello.clone()).await;
        assert_eq!(outline(&frames), expected);
        assert_eq!(ada.stream("SendStreamingMessage", hello).await, frames, "a repeat is told the same");
        let finish = json!({"message": message(&format!("{binding:?}-2"), "finish")});
        let frames = ada.stream("SendStreamingMessage", finish).await;
        assert_eq!(outline(&frames).last().unwrap(), "3 statusUpdate COMPLETED");
    }
}

#[tokio::test]
async fn a_follow_up_begins_with_a_picture_of_its_own_turn() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}-1"), "hello")).await;
        let hold = json!({"message": reply(&format!("{binding:?}-2"), "hold", &task)});
        let mut stream = ada.open("SendStreamingMessage", hold.clone(), None).await;
        let first = stream.next().await.unwrap();
        assert_eq!(outline(std::slice::from_ref(&first)), ["5 task WORKING"]);
        assert_eq!(first.1["task"]["artifacts"][0]["parts"].as_array().unwrap().len(), 2);
        assert_eq!(first.1["task"]["history"].as_array().unwrap().len(), 2, "as it was before");
        server.engine.release();
        assert_eq!(outline(&stream.rest().await), ["6 statusUpdate INPUT_REQUIRED"]);
        let again = ada.stream("SendStreamingMessage", hold).await;
        assert_eq!(outline(&again), ["6 task INPUT_REQUIRED"], "the turn has ended; the picture says so");
    }
}

#[tokio::test]
async fn a_follow_up_skips_nothing_of_its_turn() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}-1"), "hello")).await;
        let params = json!({"message": reply(&format!("{binding:?}-2"), "hello", &task)});
        let frames = ada.stream("SendStreamingMessage", params).await;
        let expected = [
            "5 task WORKING",
            "6 artifactUpdate Hello, ",
            "7 artifactUpdate world.",
            "8 statusUpdate INPUT_REQUIRED",
        ];
        assert_eq!(outline(&frames), expected);
    }
}

#[tokio::test]
async fn an_envelope_alone_is_told_too() {
    let server = start().await;
    for binding in BOTH {
        let message = brief(&format!("{binding:?}"), json!({"name": "n", "goal": "g"}), "");
        let frames =
            server.caller(binding, "ada").stream("SendStreamingMessage", json!({"message": message})).await;
        assert_eq!(outline(&frames), ["0 task SUBMITTED", "1 statusUpdate INPUT_REQUIRED"]);
    }
}

#[tokio::test]
async fn a_subscription_shows_an_idle_task_and_stays_for_its_next_turn() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}-1"), "hello")).await;
        let mut one = ada.open("SubscribeToTask", json!({"id": task["id"]}), None).await;
        let mut two = ada.open("SubscribeToTask", json!({"id": task["id"]}), None).await;
        let three = ada.open("SubscribeToTask", json!({"id": task["id"]}), None).await;
        for stream in [&mut one, &mut two] {
            let first = stream.next().await.unwrap();
            assert_eq!(outline(&[first]), ["4 task INPUT_REQUIRED"]);
        }
        drop(three);
        ada.send(reply(&format!("{binding:?}-2"), "ask", &task)).await;
        let frames = one.rest().await;
        assert_eq!(outline(&frames), ["5 statusUpdate WORKING", "6 statusUpdate INPUT_REQUIRED"]);
        assert_eq!(two.rest().await, frames, "every stream sees the same");
    }
}

#[tokio::test]
async fn a_stream_resumes_where_it_was_cut() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}-1"), "hello")).await;
        let tail = ["3 artifactUpdate world.", "4 statusUpdate INPUT_REQUIRED"];
        let mut cut = ada.open("SubscribeToTask", json!({"id": task["id"]}), Some(2)).await;
        assert_eq!(outline(&cut.rest().await), tail, "a missed end of the turn ends the stream");
        let mut idle = ada.open("SubscribeToTask", json!({"id": task["id"]}), Some(4)).await;
        ada.send(reply(&format!("{binding:?}-2"), "ask", &task)).await;
        let turn = ["5 statusUpdate WORKING", "6 statusUpdate INPUT_REQUIRED"];
        assert_eq!(outline(&idle.rest().await), turn, "nothing was missed, so the next turn is awaited");
    }
}

#[tokio::test]
async fn a_replay_passes_over_old_ends_of_turns() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}-1"), "hello")).await;
        let id = json!({"id": task["id"]});
        ada.send(reply(&format!("{binding:?}-2"), "finish", &task)).await;
        let whole = ada.open("SubscribeToTask", id.clone(), Some(0)).await.rest().await;
        assert_eq!(
            outline(&whole)[3..],
            [
                "4 statusUpdate INPUT_REQUIRED",
                "5 statusUpdate WORKING",
                "6 artifactUpdate the whole answer",
                "7 statusUpdate COMPLETED",
            ]
        );
        let nothing = ada.open("SubscribeToTask", id.clone(), Some(7)).await.rest().await;
        assert_eq!(nothing, []);
        assert_eq!(ada.refused("SubscribeToTask", id.clone()).await.reason, "UNSUPPORTED_OPERATION");
        for after in ["8", "x", "-1", "18446744073709551616"] {
            let request = ada.request("SubscribeToTask", id.clone()).header("last-event-id", after);
            let text = request.send().await.unwrap().text().await.unwrap();
            assert!(text.contains("INVALID_PARAMS"), "{after} {text}");
        }
    }
}

#[tokio::test]
async fn the_position_may_stand_in_the_query() {
    let server = start().await;
    let ada = server.caller(BOTH[1], "ada");
    let task = ada.send(message("m", "finish")).await;
    let url =
        format!("{}/tasks/{}:subscribe?after=2&A2A-Version=1.0", server.base, task["id"].as_str().unwrap());
    let request = server.http.get(url).header("x-participant-id", "ada");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.starts_with("id: 3\n") || text.contains("\nid: 3\n"), "{text}");
    assert_eq!(text.matches("data:").count(), 1);
}

#[tokio::test]
async fn errors_before_a_stream_are_plain_json() {
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let refusal = ada.refused("SubscribeToTask", json!({"id": "missing"})).await;
        assert_eq!(refusal.reason, "TASK_NOT_FOUND");
        let late = json!({"message": reply("x", "hello", &json!({"id": "missing"}))});
        assert_eq!(ada.refused("SendStreamingMessage", late).await.reason, "TASK_NOT_FOUND");
    }
}

#[tokio::test]
async fn stopping_ends_streams_and_waits_and_drains() {
    let server = start().await;
    let ada = server.caller(BOTH[0], "ada");
    let hold = json!({"message": message("1", "hold")});
    let mut stream = ada.open("SendStreamingMessage", hold, None).await;
    assert_eq!(outline(&[stream.next().await.unwrap(), stream.next().await.unwrap()]).len(), 2);
    let waiting = ada.request("SendMessage", json!({"message": message("2", "hold")})).send();
    let stopping = async {
        while server.engine.started().len() < 2 {
            tokio::task::yield_now().await;
        }
        server.group.stop_token().cancel();
    };
    let (answer, ()) = futures::join!(waiting, stopping);
    assert_eq!(stream.next().await, None, "the stream ends without an error");
    let answer = answer.unwrap().text().await.unwrap();
    assert!(answer.contains("UNAVAILABLE"), "{answer}");
    // Both tasks of the engine still hold; let them go so that the group is empty.
    server.engine.release();
    server.engine.release();
    assert!(server.group.shutdown(Duration::from_secs(10)).await);
    assert!(server.http.get(format!("{}/healthz", server.base)).send().await.is_err());
}
