//! Races of clients against the whole product, each many times over: the real engine, the real store, both bindings.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, message, reply, state},
    rig::Rig,
};

/// Rounds of each race.
const ROUNDS: usize = 500;
/// Clients of one round.
const AT_ONCE: usize = 6;

const SCRIPT: &str = "[[turns]]\ntext = \"You said: {{message_text}}\"\n";

/// Case C4: equal first messages at once are one task with one answer, whoever is first.
#[tokio::test]
async fn equal_first_messages_are_always_one_task() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let apis = BOTH.map(|binding| server.api(binding, "ada"));
    for round in 0..ROUNDS {
        let id = format!("first-{round}");
        let sends = (0..AT_ONCE).map(|at| apis[at % 2].send(message(&id, "hello")));
        let answers = join_all(sends).await;
        for answer in &answers {
            assert_eq!((state(answer), &answer["id"]), ("COMPLETED", &answers[0]["id"]), "round {round}");
        }
    }
    assert_eq!(server.model_calls(), ROUNDS, "one call of the model each");
}

/// Case C3: a message and the end of its task at once. Either the message is answered or it is refused; nothing hangs, and
/// an ended task stays as it ended.
#[tokio::test]
async fn a_message_and_a_cancel_at_once_leave_an_ended_task() {
    let rig = Rig::new(SCRIPT).conversations();
    let server = rig.serve().await;
    let apis = BOTH.map(|binding| server.api(binding, "ada"));
    for round in 0..ROUNDS {
        let task = apis[round % 2].send(message(&format!("m-{round}"), "hello")).await;
        let id = task["id"].as_str().unwrap().to_owned();
        let (more, cancel) = (reply(&format!("r-{round}"), "more", &task), json!({"id": id}));
        let said = apis[0].call("SendMessage", json!({"message": more}));
        let (said, canceled) = join(said, apis[1].call("CancelTask", cancel)).await;
        assert!(canceled.is_ok(), "round {round}: {canceled:?}");
        if let Err(refusal) = said {
            assert_eq!(refusal.code, -32_004, "round {round}: {refusal:?}");
        }
        let ended = apis[0].task(&id).await;
        assert_eq!(state(&ended), "CANCELED", "round {round}");
    }
}

/// Cases C1 and C5: whenever a subscriber comes, it gets the end of the task, or the documented error; never silence.
#[tokio::test]
async fn a_subscriber_always_gets_the_end() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let api = server.api(Binding::JsonRpc, "ada");
    for round in 0..ROUNDS {
        let task = api.send_off(message(&format!("s-{round}"), "hello")).await;
        let id = task["id"].as_str().unwrap().to_owned();
        let events = api.subscribe(&id, Some(0)).await.rest().await;
        let seqs: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
        assert!(seqs.windows(2).all(|pair| pair[1] > pair[0]), "round {round}: {seqs:?}");
        let last = events.last().map(|(_, event)| event.clone()).unwrap_or(Value::Null);
        let status = if last["task"].is_null() { &last["statusUpdate"] } else { &last["task"] };
        assert_eq!(state(status), "COMPLETED", "round {round}: {last}");
    }
}
