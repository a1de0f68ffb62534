//! Signing in with the tokens of an issuer, from the configuration to both bindings: a real process, a real key server.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, http, message},
    issuer::{Issuer, Signer, key_set, unsigned},
    rig::{Rig, Server, tiny_harness, until},
};

const SCRIPT: &str = "[[turns]]\ntext = \"You said: {{message_text}}\"\n";
const ISSUER: &str = "https://issuer.example/";
const AUDIENCE: &str = "https://agent.example";

fn rig(jwks: &str) -> Rig {
    Rig::new(SCRIPT).tables(&format!(
        "[security.jwt]\nissuer = {ISSUER:?}\naudience = {AUDIENCE:?}\njwks = {jwks:?}\nparticipant_claim = \"email\"\n"
    ))
}

#[expect(clippy::disallowed_methods, reason = "tokens are made by the clock that the server reads")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Claims that admit Ada for an hour, with these instead.
fn claims(others: Value) -> Value {
    let now = now();
    let mut claims = json!({"iss": ISSUER, "aud": [AUDIENCE], "sub": "u-17", "email": "ada", "iat": now, "exp": now + 3_600});
    claims.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    claims
}

/// Status, challenge and body of a blocking send with this token and this assertion; empty ones are left out.
async fn sent(
    server: &Server,
    binding: Binding,
    id: &str,
    token: &str,
    asserted: &str,
) -> (u16, String, Value) {
    let params = json!({"message": message(id, "hello")});
    let (path, body) = match binding {
        Binding::JsonRpc => {
            ("/", json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}))
        }
        Binding::Rest => ("/message:send", params),
    };
    let mut request = http().post(format!("{}{path}", server.url)).header("a2a-version", "1.0").json(&body);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if !asserted.is_empty() {
        request = request.header("x-participant-id", asserted);
    }
    let response = request.send().await.unwrap();
    let challenge =
        response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, challenge.unwrap_or_default(), body.get("result").unwrap_or(&body).clone())
}

fn sender(body: &Value) -> &Value {
    &body["task"]["history"][0]["metadata"]["participant_id"]
}

#[tokio::test]
async fn a_token_of_the_issuer_says_who_asks() {
    let (signer, stranger) = (Signer::new("k-1", "ES256"), Signer::new("k-1", "ES256"));
    let issuer = Issuer::showing(key_set(&[&signer])).await;
    let rig = rig(&issuer.url);
    let server = rig.serve().await;
    let good = signer.token(&claims(json!({})));
    let now = now();
    let with = |others: Value| signer.token(&claims(others));
    let refused = [
        ("no token", String::new()),
        ("another issuer", with(json!({"iss": "https://issuer.example"}))),
        ("another audience", with(json!({"aud": "https://other.example"}))),
        ("expired", with(json!({"exp": now - 120}))),
        ("not yet valid", with(json!({"nbf": now + 600}))),
        ("nobody", with(json!({"email": Value::Null}))),
        ("an unknown key", Signer::new("k-2", "ES256").token(&claims(json!({})))),
        ("the id of a key, not the key", stranger.token(&claims(json!({})))),
        ("no signature", format!("{}.", unsigned(&json!({"alg": "none", "kid": "k-1"}), &claims(json!({}))))),
        ("no token at all", "hello".to_owned()),
    ];
    for binding in BOTH {
        let (status, _, body) = sent(&server, binding, &format!("{binding:?}-1"), &good, "").await;
        assert_eq!((status, sender(&body)), (200, &json!("ada")), "{body}");
        let (status, _, body) = sent(&server, binding, &format!("{binding:?}-2"), &good, "ada").await;
        assert_eq!((status, sender(&body)), (200, &json!("ada")), "{body}");
        let (_, _, body) = sent(&server, binding, &format!("{binding:?}-3"), &good, "bob").await;
        let text = body["error"]["message"].as_str().unwrap();
        assert_eq!(text, "the asserted participant is not the one that signed in");
        for (what, token) in &refused {
            let (status, challenge, body) = sent(&server, binding, "refused", token, "ada").await;
            assert_eq!(
                (status, challenge.as_str()),
                (401, "Bearer realm=\"a2a\""),
                "{binding:?} {what} {body}"
            );
            assert!(body["error"]["message"].as_str().unwrap().starts_with("sign in with"), "{what} {body}");
        }
    }
    // The program itself signs in with a token from the environment.
    let args = ["tasks", "list", "--url", &server.url, "--participant", "ada", "--token-env", "TOKEN"];
    let listed = tiny_harness(args).env("TOKEN", &good).run().await;
    assert_eq!((listed.code, listed.stdout.lines().count()), (Some(0), 4), "{listed:?}");
    assert!(!server.process.stderr().contains(&good), "tokens are not logged");
}

#[tokio::test]
async fn the_issuer_changes_its_keys_while_the_server_runs() {
    let [old, new] = ["old", "new"].map(|kid| Signer::new(kid, "EdDSA"));
    let [with_old, with_new] = [&old, &new].map(|signer| signer.token(&claims(json!({}))));
    let issuer = Issuer::showing(key_set(&[&old])).await;
    let rig = rig(&issuer.url);
    let server = rig.serve().await;
    let status = async |token: &str| sent(&server, Binding::Rest, "m", token, "").await.0;
    assert_eq!(status(&with_old).await, 200);
    issuer.answer(200, key_set(&[&new]));
    until("the new key is known", async || status(&with_new).await == 200).await;
    assert_eq!(status(&with_old).await, 401, "the old key was withdrawn");
    assert_eq!(issuer.asked(), ["/keys", "/keys"]);
}

#[tokio::test]
async fn the_doctor_loads_the_keys() {
    let signer = Signer::new("k-1", "RS256");
    let issuer = Issuer::showing(key_set(&[&signer])).await;
    let rig = rig(&format!("{}?secret=hush", issuer.url));
    let config = rig.config().display().to_string();
    let doctor = async || tiny_harness(["doctor", "--config", &config]).run().await;
    let well = doctor().await;
    assert_eq!(well.code, Some(0), "{well:?}");
    let line = format!("  ok    signed tokens: usable keys of {ISSUER}: 1, from {}\n", issuer.url);
    assert!(well.stdout.contains(&line), "{well:?}");
    for (status, document, reason) in [
        (503, String::new(), "the issuer answers with status 503"),
        (302, String::new(), "the issuer answers with status 302"),
        (200, "<html>".to_owned(), "this is no key set"),
        (200, json!({"keys": []}).to_string(), "no key with an id that can verify tokens"),
    ] {
        issuer.answer(status, document);
        let ill = doctor().await;
        assert_eq!(ill.code, Some(1), "{ill:?}");
        let line = ill.stdout.lines().find(|line| line.starts_with("  FAIL  signed tokens: ")).unwrap();
        assert!(line.contains(reason) && line.ends_with("(security.jwt.jwks)"), "{line}");
        assert!(!ill.stdout.contains("hush"), "{ill:?}");
    }
    assert!(issuer.asked().iter().all(|path| path == "/keys"), "redirects are not followed");
}
