//! What peers leave out: ProtoJSON writers omit fields that have their default value, and null means absent.

use serde_json::{Value, json};

use super::operation::Operation;
use crate::proto_json;

/// Completes the result of an operation.
pub(super) fn complete(operation: Operation, result: &mut Value) {
    proto_json::normalize(result);
    match operation {
        Operation::GetTask | Operation::CancelTask => complete_task(result),
        Operation::SendMessage => complete_event(result),
        Operation::ListTasks => {
            for (key, default) in [
                ("tasks", json!([])),
                ("nextPageToken", json!("")),
                ("pageSize", json!(0)),
                ("totalSize", json!(0)),
            ] {
                default_field(result, key, default);
            }
            each(result, "tasks", complete_task);
        }
        Operation::CreatePushConfig => {}
        Operation::DeletePushConfig => {
            if result.is_null() {
                *result = json!({});
            }
        }
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {}
    }
}

/// Completes an event of a stream, or the answer to a message.
pub(super) fn complete_event(event: &mut Value) {
    proto_json::normalize(event);
    let Value::Object(fields) = event else { return };
    for (key, value) in fields {
        match key.as_str() {
            "task" => complete_task(value),
            "message" => complete_message(value),
            "statusUpdate" => {
                default_field(value, "contextId", json!(""));
                complete_status(value);
            }
            "artifactUpdate" => {
                default_field(value, "contextId", json!(""));
                if let Some(artifact) = value.get_mut("artifact") {
                    complete_artifact(artifact);
                }
            }
            _ => {}
        }
    }
}

/// Completes a card.
pub(super) fn complete_card(card: &mut Value) {
    proto_json::normalize(card);
    default_field(card, "capabilities", json!({}));
    default_field(card, "version", json!(""));
    each(card, "supportedInterfaces", |interface| default_field(interface, "protocolVersion", json!("1.0")));
    each(card, "skills", |skill| {
        for (key, default) in [("description", json!("")), ("tags", json!([]))] {
            default_field(skill, key, default);
        }
    });
}

fn complete_task(task: &mut Value) {
    default_field(task, "contextId", json!(""));
    complete_status(task);
    each(task, "artifacts", complete_artifact);
    each(task, "history", complete_message);
}

fn complete_status(holder: &mut Value) {
    if let Some(message) = holder.pointer_mut("/status/message") {
        complete_message(message);
    }
}

fn complete_message(message: &mut Value) {
    default_field(message, "parts", json!([]));
}

fn complete_artifact(artifact: &mut Value) {
    default_field(artifact, "parts", json!([]));
}

fn each(holder: &mut Value, key: &str, complete: impl Fn(&mut Value)) {
    if let Some(Value::Array(items)) = holder.get_mut(key) {
        items.iter_mut().for_each(complete);
    }
}

fn default_field(holder: &mut Value, key: &str, default: Value) {
    if let Value::Object(fields) = holder {
        fields.entry(key).or_insert(default);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_its_default_value_may_be_left_out() {
        let mut page = json!({"tasks": [{"id": "t", "status": {"state": "TASK_STATE_WORKING",
            "message": {"messageId": "m", "role": "ROLE_AGENT"}}, "artifacts": [{"artifactId": "a"}], "history": null}]});
        complete(Operation::ListTasks, &mut page);
        let page: a2a::ListTasksResponse = serde_json::from_value(page).unwrap();
        assert_eq!((page.tasks[0].context_id.as_str(), page.total_size), ("", 0));
        let mut empty = json!({});
        complete(Operation::ListTasks, &mut empty);
        assert!(serde_json::from_value::<a2a::ListTasksResponse>(empty).unwrap().tasks.is_empty());
        let mut event = json!({"artifact_update": {"task_id": "t", "artifact": {"artifact_id": "a"}}});
        complete_event(&mut event);
        serde_json::from_value::<a2a::StreamResponse>(event).unwrap();
        let mut card = json!({"name": "n", "supportedInterfaces": [{"url": "u", "protocolBinding": "JSONRPC"}],
            "skills": [{"id": "s", "name": "S"}]});
        complete_card(&mut card);
        serde_json::from_value::<a2a::AgentCard>(card).unwrap();
    }
}
