//! The HTTP+JSON binding: paths, tenants, methods, and errors in one form.

use serde_json::{Value, json};

use crate::{
    api::{Binding, message},
    server::start,
};

#[tokio::test]
async fn unknown_paths_and_broken_bodies_answer_in_the_form_of_the_binding() {
    let server = start().await;
    let table = [
        ("GET", "/nothing", "", 404, "NOT_FOUND"),
        ("GET", "/tasks/a/b/c", "", 404, "NOT_FOUND"),
        ("GET", "/tasks/%ff", "", 404, "NOT_FOUND"),
        ("DELETE", "/tasks", "", 405, "UNIMPLEMENTED"),
        ("GET", "/message:send", "", 405, "UNIMPLEMENTED"),
        ("POST", "/message:send", "", 400, "INVALID_ARGUMENT"),
        ("POST", "/message:send", "{", 400, "INVALID_ARGUMENT"),
        ("POST", "/message:send", "[]", 400, "INVALID_ARGUMENT"),
        ("POST", "/message:send", "null", 400, "INVALID_ARGUMENT"),
        ("POST", "/message:stream", "{\"message\":5}", 400, "INVALID_ARGUMENT"),
        ("GET", "/tasks?pageSize=many", "", 400, "INVALID_ARGUMENT"),
        ("GET", "/tasks?includeArtifacts=maybe", "", 400, "INVALID_ARGUMENT"),
        ("GET", "/tasks/x?historyLength=one", "", 400, "INVALID_ARGUMENT"),
    ];
    for (method, path, body, status, name) in table {
        let request = server.http.request(method.parse().unwrap(), format!("{}{path}", server.base));
        let request = request.header("a2a-version", "1.0").header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{method} {path} {body}");
        assert_eq!(response.headers()["content-type"], "application/a2a+json");
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(answer["error"]["status"], name, "{method} {path}");
        assert_eq!(answer["error"]["code"], status);
        assert!(answer["error"]["details"].is_array() && answer["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_told_those_it_takes() {
    let server = start().await;
    let task = server.caller(Binding::Rest, "ada").send(message("m", "hello")).await;
    let id = task["id"].as_str().unwrap();
    let ask = async |method: &str, path: &str| {
        let request = server.http.request(method.parse().unwrap(), format!("{}{path}", server.base));
        let request = request.header("a2a-version", "1.0").header("x-participant-id", "ada");
        let response = request.send().await.unwrap();
        let allow = response.headers().get("allow").map(|value| value.to_str().unwrap().to_owned());
        let (status, length) =
            (response.status().as_u16(), response.headers().get("content-length").cloned());
        (status, allow, length, response.text().await.unwrap())
    };
    for (path, methods) in [
        ("/message:send".to_owned(), "POST"),
        ("/acme/message:stream".to_owned(), "POST"),
        ("/tasks".to_owned(), "GET, HEAD"),
        (format!("/tasks/{id}"), "GET, HEAD"),
        (format!("/acme/tasks/{id}:cancel"), "GET, HEAD, POST"),
        (format!("/tasks/{id}:subscribe"), "GET, POST"),
        (format!("/tasks/{id}/pushNotificationConfigs"), "GET, HEAD, POST"),
        (format!("/tasks/{id}/pushNotificationConfigs/c"), "DELETE, GET, HEAD"),
        ("/extendedAgentCard".to_owned(), "GET, HEAD"),
    ] {
        for method in ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"] {
            if methods.split(", ").any(|taken| taken == method) {
                continue;
            }
            let (status, allow, _, _) = ask(method, &path).await;
            assert_eq!((status, allow.as_deref()), (405, Some(methods)), "{method} {path}");
        }
    }
    for path in ["/tasks".to_owned(), format!("/tasks/{id}")] {
        let (status, _, length, body) = ask("GET", &path).await;
        assert_eq!(status, 200);
        assert_eq!(ask("HEAD", &path).await, (200, None, length, String::new()), "{path} {body:.80}");
    }
}

#[tokio::test]
async fn every_tenant_names_the_same_agent() {
    let server = start().await;
    let task = server.caller(Binding::Rest, "ada").send(message("m", "hello")).await;
    let id = task["id"].as_str().unwrap();
    for path in [format!("/tasks/{id}"), format!("/acme/tasks/{id}"), format!("/a%20b/tasks/{id}")] {
        let request = server.http.get(format!("{}{path}", server.base)).header("a2a-version", "1.0");
        let response = request.header("x-participant-id", "ada").send().await.unwrap();
        let found: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(found["id"], task["id"], "{path}");
    }
}

#[tokio::test]
async fn query_names_may_be_those_of_the_proto_file() {
    let server = start().await;
    server.caller(Binding::Rest, "ada").send(message("m", "hello")).await;
    let request = server.http.get(format!("{}/tasks?page_size=7&include_artifacts=true", server.base));
    let request = request.header("a2a-version", "1.0").header("x-participant-id", "ada");
    let page: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(page["pageSize"], 7);
    assert_eq!(page["tasks"][0]["artifacts"][0]["artifactId"], json!("answer-1"));
}

#[tokio::test]
async fn subscribe_is_found_by_get_and_by_post() {
    let server = start().await;
    let task = server.caller(Binding::Rest, "ada").send(message("m", "finish")).await;
    let url = format!("{}/tasks/{}:subscribe", server.base, task["id"].as_str().unwrap());
    for method in ["GET", "POST"] {
        let request = server.http.request(method.parse().unwrap(), &url).header("a2a-version", "1.0");
        let response = request.header("x-participant-id", "ada").send().await.unwrap();
        assert_eq!(response.status().as_u16(), 400, "the task has ended");
    }
}
