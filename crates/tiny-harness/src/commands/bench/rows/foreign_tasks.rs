//! Whether the time of an answer tells a task of others from one that does not exist, on every operation on a task.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::{
    client::{Client, expect, rpc},
    figure::{Figure, Times},
    lab::{Effort, Lab, ONE_TURN, Setup},
    load::{self, timed},
};
use crate::failure::Failure;

/// Bytes of the first message of the task of others: long enough that reading it takes time.
const MESSAGE_BYTES: usize = 200_000;
/// Repetitions with each operation, at most.
const SAMPLES: usize = 400;
/// An id of the form that tasks have, and no task's.
const MISSING: &str = "0badcafe-0000-8000-8000-000000000000";

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let setup = Setup { name: "foreign", script: ONE_TURN, lifecycle: "conversation", tools: false };
    let server = lab.serve(&setup).await?;
    let mut client = Client::connect(server.address).await?;
    let (task, context) = somebody_elses(&mut client).await?;
    let effort = Effort {
        samples: lab.effort.samples.min(SAMPLES),
        samples_time: lab.effort.samples_time / 4,
        ..lab.effort
    };
    let mut figures = Vec::new();
    for ((operation, foreign), (_, missing)) in
        operations(&task, &context).into_iter().zip(operations(MISSING, MISSING))
    {
        let wanted = if operation == "ListTasks" { "\"totalSize\":0" } else { "TASK_NOT_FOUND" };
        let (foreign, missing) = (rpc(operation, &foreign), rpc(operation, &missing));
        let mut times = [Vec::new(), Vec::new()];
        // Over one connection, and each of the two first as often as the other: what comes before is felt, too.
        let both = async |number: usize| {
            let begun = Instant::now();
            for body in [number % 2, 1 - number % 2] {
                let ask =
                    async { expect(client.post("/", [&foreign, &missing][body]).await?, wanted).map(drop) };
                times[body].push(timed(ask).await?);
            }
            Ok(begun.elapsed())
        };
        let counted = load::one_by_one(&effort, both).await?.len();
        let [times, least] = times.map(|mut all| Times::new(all.split_off(all.len() - counted)));
        figures.push(
            Figure::new(format!("{operation} of a foreign task, p50"), "ms", times.ms(50), None)
                .floor(least.ms(50))
                .samples(times.len()),
        );
        let share = times.slower_than(&least);
        figures.push(
            Figure::new("  slower than of a missing one", "%", share, None).floor(50.0).samples(times.len()),
        );
    }
    server.stop().await?;
    Ok(figures)
}

/// A task in which the participant that the measurement acts as takes no part: its id, and its context's.
async fn somebody_elses(client: &mut Client) -> Result<(String, String), Failure> {
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x".repeat(MESSAGE_BYTES)}],
        "metadata": {"participant_id": "somebody"},
    });
    let answer = client.post("/", &rpc("SendMessage", &json!({"message": message}))).await?;
    let answer: Value =
        serde_json::from_str(&answer).map_err(|e| Failure::general(format!("an answer is not JSON: {e}")))?;
    let task = &answer["result"]["task"];
    match (task["id"].as_str(), task["contextId"].as_str()) {
        (Some(id), Some(context)) => Ok((id.to_owned(), context.to_owned())),
        _ => Err(Failure::general("a server that is measured made no task")),
    }
}

/// Every operation on this task, and the listing of its context.
fn operations(task: &str, context: &str) -> [(&'static str, Value); 10] {
    let id = json!({"id": task});
    let config = json!({"taskId": task, "id": "c", "url": "https://example.com/"});
    let message = json!({"message": {
        "messageId": "f", "taskId": task, "role": "ROLE_USER", "parts": [{"text": "hello"}],
    }});
    [
        ("GetTask", id.clone()),
        ("CancelTask", id.clone()),
        ("SubscribeToTask", id),
        ("SendMessage", message.clone()),
        ("SendStreamingMessage", message),
        ("CreateTaskPushNotificationConfig", config.clone()),
        ("GetTaskPushNotificationConfig", config),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": task, "id": "c"})),
        ("ListTasks", json!({"contextId": context})),
    ]
}
