//! Streamable HTTP: sessions that expire, and what a failed request means for its call.

use std::{sync::Arc, time::Duration};

use harness_mcp::{McpOptions, McpTools, ServerConfig, ServerTransport};
use harness_ports::{TaskGroup, ToolErrorKind, ToolPart, ToolSource};
use tokio::time::Instant;

use crate::{
    http_server::{Calls, HttpServer},
    rig::{LONG, call, eventually, nothing, start},
};

async fn connected(server: &HttpServer) -> (Arc<McpTools>, TaskGroup) {
    let (tools, problems, group) = start(vec![server.config()], McpOptions::default()).await;
    assert_eq!(problems, []);
    (tools, group)
}

fn done() -> [ToolPart; 1] {
    [ToolPart::Text("done".to_owned())]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_answered_by_json_and_by_event_streams() {
    let server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    for calls in [Calls::Answer, Calls::Stream] {
        server.calls(calls);
        assert_eq!(tools.call(call("p/h.act", nothing())).await.unwrap().parts, done());
    }
    let seen = server.seen("tools/call");
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| seen.session.as_deref() == Some("session-1")));
    assert!(seen.iter().all(|seen| seen.authorization.as_deref() == Some("Bearer abc")));
    tools.shutdown().await;
    assert_eq!(server.seen("DELETE").len(), 1, "the session is given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_session_is_initialised_once_and_a_repeatable_call_repeated_once() {
    let server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    server.forget();
    let began = Instant::now();
    assert_eq!(tools.call(call("p/h.read", nothing())).await.unwrap().parts, done());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let sessions: Vec<_> = server.seen("initialize").into_iter().map(|seen| seen.session).collect();
    assert_eq!(sessions, [None, None], "never with the old id");
    let calls: Vec<_> = server.seen("tools/call").into_iter().map(|seen| seen.session.unwrap()).collect();
    assert_eq!(calls, ["session-1", "session-2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_session_does_not_repeat_a_call_without_hints() {
    let server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    server.forget();
    let error = tools.call(call("p/h.act", nothing())).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::NotSent);
    assert_eq!(server.seen("tools/call").len(), 1);
    assert_eq!(
        tools.call(call("p/h.act", nothing())).await.unwrap().parts,
        done(),
        "the next call has a session"
    );
    assert_eq!(server.seen("initialize").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgets_every_session_is_an_error_after_one_more_attempt() {
    let server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    server.calls(Calls::NotFound);
    let began = Instant::now();
    let error = tools.call(call("p/h.read", nothing())).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(error.kind, ToolErrorKind::Unusable, "trying again would not help");
    assert_eq!(server.seen("tools/call").len(), 2);
    assert_eq!(server.seen("initialize").len(), 2);
    server.calls(Calls::Answer);
    assert_eq!(tools.call(call("p/h.read", nothing())).await.unwrap().parts, done(), "it may recover");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_say_whether_the_call_may_have_run() {
    let mut server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    let cases = [
        (Calls::Status(500), ToolErrorKind::OutcomeUnknown),
        (Calls::Status(503), ToolErrorKind::OutcomeUnknown),
        (Calls::Status(429), ToolErrorKind::NotSent),
        (Calls::Redirect, ToolErrorKind::OutcomeUnknown),
    ];
    for (calls, kind) in cases {
        server.calls(calls);
        let error = tools.call(call("p/h.act", nothing())).await.unwrap_err();
        assert_eq!(error.kind, kind, "{calls:?}: {error}");
        assert!(!error.message.contains("127.0.0.1"), "{error}");
    }
    assert_eq!(server.seen("tools/call").len(), cases.len(), "none is repeated");
    server.stop().await;
    let error = tools.call(call("p/h.act", nothing())).await.unwrap_err();
    assert_ne!(error.kind, ToolErrorKind::Refused);
    let error = tools.call(call("p/h.act", nothing())).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::NotSent, "nobody listens");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_out_of_time_is_told_to_the_server_and_disturbs_no_other() {
    let server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    server.calls(Calls::Hang);
    let mut hanging = call("p/h.act", nothing());
    hanging.timeout = Duration::from_millis(500);
    let hanging = tools.call(hanging);
    let meanwhile = async {
        eventually("the call arrives", || server.seen("tools/call").len() == 1).await;
        server.calls(Calls::Answer);
        tools.call(call("p/h.act", nothing())).await.unwrap()
    };
    let (hanging, meanwhile) = tokio::join!(hanging, meanwhile);
    assert_eq!(meanwhile.parts, done());
    assert_eq!(hanging.unwrap_err().kind, ToolErrorKind::OutcomeUnknown);
    eventually("the server is told", || server.seen("notifications/cancelled").len() == 1).await;
    assert_eq!(tools.call(call("p/h.act", nothing())).await.unwrap().parts, done());
    assert_eq!(server.seen("initialize").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_beyond_the_limit_is_dropped_and_says_so() {
    let server = HttpServer::start().await;
    let (tools, _group) = connected(&server).await;
    server.calls(Calls::Flood);
    let output = tools.call(call("p/h.act", nothing())).await.unwrap();
    assert!(output.truncated);
    let [ToolPart::Text(text)] = output.parts.as_slice() else { panic!("{output:?}") };
    assert!(text.contains("the answer was dropped"), "{text}");
    assert_eq!(server.seen("tools/call").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_cannot_be_used_are_problems() {
    let server = HttpServer::start().await;
    let with = |prefix: &str, url: &str, header: &str| ServerConfig {
        registry_prefix: prefix.to_owned(),
        transport: ServerTransport::StreamableHttp {
            url: url.to_owned(),
            headers: [(header.to_owned(), "x".to_owned())].into(),
        },
    };
    let servers = vec![
        server.config(),
        with("p/1-url", "not a url", "x-ok"),
        with("p/2-scheme", "file:///etc/passwd", "x-ok"),
        with("p/3-header", "http://127.0.0.1:1/", "bad header"),
        with("p/4-nobody", "http://127.0.0.1:1/", "x-ok"),
    ];
    let options = McpOptions { start_timeout: LONG, ..McpOptions::default() };
    let (tools, problems, _group) = start(servers, options).await;
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let [url, scheme, header, nobody] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(url.contains("p/1-url its URL is not valid"), "{url}");
    assert!(scheme.contains("neither http nor https"), "{scheme}");
    assert!(header.contains("its header \"bad header\" is not valid"), "{header}");
    assert!(nobody.contains("cannot be reached"), "{nobody}");
    assert_eq!(tools.catalogue().len(), 2);
}
