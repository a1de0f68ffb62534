//! The operations, and how HTTP+JSON writes each of them. Source: A2A 1.0.1 section 11.

use a2a::jsonrpc::methods as m;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, Url};
use serde_json::{Map, Value};

/// What stands in a path segment as it is. Ids of others may hold anything.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An operation that this client calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    DeletePushConfig,
}

/// A request of the HTTP+JSON binding.
#[derive(Debug, PartialEq)]
pub(super) struct RestRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Value>,
}

impl Operation {
    /// Its name in JSON-RPC.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::SendMessage => m::SEND_MESSAGE,
            Self::SendStreamingMessage => m::SEND_STREAMING_MESSAGE,
            Self::GetTask => m::GET_TASK,
            Self::ListTasks => m::LIST_TASKS,
            Self::CancelTask => m::CANCEL_TASK,
            Self::SubscribeToTask => m::SUBSCRIBE_TO_TASK,
            Self::CreatePushConfig => m::CREATE_PUSH_CONFIG,
            Self::DeletePushConfig => m::DELETE_PUSH_CONFIG,
        }
    }

    /// Its request in HTTP+JSON below an interface's URL.
    pub(super) fn rest(self, base: &Url, tenant: Option<&str>, params: Value) -> RestRequest {
        let Value::Object(mut fields) = params else { return self.rest(base, tenant, Map::new().into()) };
        let mut path = String::new();
        if let Some(tenant) = tenant {
            path.push_str(&format!("/{}", segment(tenant)));
        }
        let (method, rest, body) = match self {
            Self::SendMessage => (Method::POST, "/message:send".to_owned(), true),
            Self::SendStreamingMessage => (Method::POST, "/message:stream".to_owned(), true),
            Self::GetTask => (Method::GET, format!("/tasks/{}", taken(&mut fields, "id")), false),
            Self::ListTasks => (Method::GET, "/tasks".to_owned(), false),
            Self::CancelTask => (Method::POST, format!("/tasks/{}:cancel", taken(&mut fields, "id")), true),
            Self::SubscribeToTask => {
                (Method::GET, format!("/tasks/{}:subscribe", taken(&mut fields, "id")), false)
            }
            Self::CreatePushConfig => (Method::POST, configs(&mut fields), true),
            Self::DeletePushConfig => {
                (Method::DELETE, format!("{}/{}", configs(&mut fields), taken(&mut fields, "id")), false)
            }
        };
        path.push_str(&rest);
        let mut url = base.clone();
        url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
        if !body && !fields.is_empty() {
            let mut query = url.query_pairs_mut();
            for (key, value) in &fields {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                query.append_pair(key, &text);
            }
        }
        RestRequest { method, url, body: body.then_some(Value::Object(fields)) }
    }
}

fn configs(fields: &mut Map<String, Value>) -> String {
    format!("/tasks/{}/pushNotificationConfigs", taken(fields, "taskId"))
}

/// A parameter that moves into the path.
fn taken(fields: &mut Map<String, Value>, key: &str) -> String {
    let value = fields.remove(key);
    segment(value.as_ref().and_then(Value::as_str).unwrap_or_default())
}

fn segment(text: &str) -> String {
    match text {
        // A path segment of dots would be taken for a step in the path.
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, SEGMENT).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(operation: Operation, base: &str, params: Value) -> String {
        let request = operation.rest(
            &Url::parse(base).unwrap(),
            Some("ten ant").filter(|_| base.ends_with('t')),
            params,
        );
        let body = request.body.map(|body| format!(" {body}")).unwrap_or_default();
        format!("{} {}{body}", request.method, request.url)
    }

    #[test]
    fn each_operation_has_its_request() {
        let base = "http://h/api/";
        for (operation, params, expected) in [
            (
                Operation::SendMessage,
                json!({"message": {}}),
                "POST http://h/api/message:send {\"message\":{}}",
            ),
            (Operation::SendStreamingMessage, json!({}), "POST http://h/api/message:stream {}"),
            (
                Operation::GetTask,
                json!({"id": "t", "historyLength": 2}),
                "GET http://h/api/tasks/t?historyLength=2",
            ),
            (Operation::ListTasks, json!({"contextId": "c d"}), "GET http://h/api/tasks?contextId=c+d"),
            (Operation::ListTasks, json!({}), "GET http://h/api/tasks"),
            (Operation::CancelTask, json!({"id": "t"}), "POST http://h/api/tasks/t:cancel {}"),
            (Operation::SubscribeToTask, json!({"id": "t"}), "GET http://h/api/tasks/t:subscribe"),
            (
                Operation::CreatePushConfig,
                json!({"taskId": "t", "url": "u"}),
                "POST http://h/api/tasks/t/pushNotificationConfigs {\"url\":\"u\"}",
            ),
            (
                Operation::DeletePushConfig,
                json!({"taskId": "t", "id": "c"}),
                "DELETE http://h/api/tasks/t/pushNotificationConfigs/c",
            ),
        ] {
            assert_eq!(line(operation, base, params), expected);
        }
        assert_eq!(line(Operation::ListTasks, "http://h/t", json!({})), "GET http://h/t/ten%20ant/tasks");
    }

    #[test]
    fn ids_stay_in_their_segment() {
        for (id, path) in [
            ("a/b?c#d", "/tasks/a%2Fb%3Fc%23d"),
            ("x:cancel", "/tasks/x%3Acancel"),
            ("\u{e4} %", "/tasks/%C3%A4%20%25"),
            ("../admin", "/tasks/..%2Fadmin"),
        ] {
            let request = Operation::GetTask.rest(&Url::parse("http://h").unwrap(), None, json!({"id": id}));
            assert_eq!((request.url.path(), request.url.query()), (path, None), "{id}");
        }
    }
}
