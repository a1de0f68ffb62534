//! Requests of the agent to itself.

use harness_a2a::{A2aConfig, OWN_PROOF_HEADER, OwnRequest, PushKey};
use harness_model::{Secret, Timestamp};
use harness_ports::Clock;
use http::HeaderValue;
use serde_json::{Value, json};

use crate::{
    api::message,
    fake_engine::TickingClock,
    server::{Server, start_with},
};

fn key(text: &str) -> PushKey {
    PushKey::from_base64(&Secret::new(text)).unwrap()
}

fn own_key() -> PushKey {
    key("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
}

fn with_key(config: &mut A2aConfig) {
    config.push_key = Some(own_key());
}

/// About what the server's clock says.
fn now() -> Timestamp {
    TickingClock::default().now()
}

fn proof(server: &Server, key: &PushKey, target: &str, body: &str, at: Timestamp) -> HeaderValue {
    let request = OwnRequest { base_url: &server.base, method: "POST", target };
    key.own_proof(request, body.as_bytes(), at)
}

fn send_body(id: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message(id, "hello")}})
        .to_string()
}

/// Posts as this agent; the status and the answer.
async fn post(server: &Server, body: &str, proof: Option<HeaderValue>) -> (u16, Value) {
    let mut request = server
        .http
        .post(format!("{}/", server.base))
        .header("a2a-version", "1.0")
        .header("content-type", "application/json")
        .header("x-participant-id", "me")
        .body(body.to_owned());
    if let Some(proof) = proof {
        request = request.header(OWN_PROOF_HEADER, proof);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
}

#[tokio::test]
async fn only_a_proof_lets_a_request_act_as_the_agent_itself() {
    let server = start_with(with_key).await;
    let body = send_body("m");
    let good = proof(&server, &own_key(), "/", &body, now());
    let (_, answer) = post(&server, &body, Some(good.clone())).await;
    assert_eq!(answer["result"]["task"]["history"][0]["metadata"]["participant_id"], "me", "{answer}");
    let other_key = key("AQEBAQEBAQEBAQEBAQEBAQ==");
    let stale = Timestamp::from_millis(now().as_millis() - 3_600_000);
    let wrong = [
        ("no proof", None),
        ("another body", Some(proof(&server, &own_key(), "/", &send_body("other"), now()))),
        ("another key", Some(proof(&server, &other_key, "/", &body, now()))),
        ("another target", Some(proof(&server, &own_key(), "/a2a/v1", &body, now()))),
        ("an old one", Some(proof(&server, &own_key(), "/", &body, stale))),
        ("garbage", Some(HeaderValue::from_static("v1;1;2;3"))),
    ];
    for (what, proof) in wrong {
        let (_, answer) = post(&server, &body, proof).await;
        assert_eq!(answer["error"]["message"], "the asserted participant is this agent itself", "{what}");
    }
    // A server without a key takes no proof at all.
    let keyless = start_with(|_| {}).await;
    let proof = proof(&keyless, &own_key(), "/", &body, now());
    assert_eq!(post(&keyless, &body, Some(proof)).await.1["error"]["code"], -32602);
}

#[tokio::test]
async fn the_agents_own_requests_are_not_limited() {
    let server = start_with(|config| {
        with_key(config);
        config.rate_limit_per_minute = 1;
    })
    .await;
    for n in 0..5 {
        let body = send_body(&format!("m{n}"));
        let good = proof(&server, &own_key(), "/", &body, now());
        assert_eq!(post(&server, &body, Some(good)).await.0, 200);
    }
    // A proof of another body is like none: one request, and no more.
    let body = send_body("changed");
    let copied = proof(&server, &own_key(), "/", &send_body("m1"), now());
    let statuses = [
        post(&server, &body, Some(copied.clone())).await.0,
        post(&server, &body, Some(copied)).await.0,
        post(&server, &body, Some(HeaderValue::from_static("v1"))).await.0,
    ];
    assert_eq!(statuses, [200, 429, 429]);
}

#[tokio::test]
async fn a_proof_is_as_good_as_signing_in() {
    let server = start_with(|config| {
        with_key(config);
        config.security = vec![harness_a2a::SecurityScheme::Bearer { tokens: Vec::new() }];
    })
    .await;
    let body = send_body("m");
    assert_eq!(post(&server, &body, None).await.0, 401);
    let good = proof(&server, &own_key(), "/", &body, now());
    assert_eq!(post(&server, &body, Some(good)).await.0, 200);
}
