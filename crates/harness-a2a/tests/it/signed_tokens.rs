//! Signing in with the signed tokens of an issuer: which ones count, and how its keys change.

use std::{fs, path::Path};

use harness_a2a::{A2aConfig, JwksSource, SecurityScheme, StaticToken};
use harness_model::{ParticipantId, Secret};
use ring::hmac;
use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, message},
    fake_engine::BEGINNING,
    issuer::{Issuer, Signer, encoded, key_set, unsigned},
    server::{PATIENCE, Server, start_with},
    sign_in::{OPERATIONS, exchange, task_or_text},
};

const ISSUER: &str = "https://issuer.example/";
const AUDIENCE: &str = "https://agent.example";
/// Seconds when the server's clock begins; it goes on by one whenever it is read.
const NOW: i64 = BEGINNING / 1_000;
const DAY: i64 = 86_400;

fn scheme(jwks: JwksSource) -> SecurityScheme {
    SecurityScheme::Jwt {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        participant_claim: "sub".to_owned(),
        jwks,
    }
}

/// Claims that admit Ada, with these instead; `null` leaves one out.
fn claims(others: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": NOW + DAY, "nbf": NOW});
    let all = claims.as_object_mut().unwrap();
    for (name, value) in others.as_object().unwrap() {
        all.insert(name.clone(), value.clone());
    }
    all.retain(|_, value| !value.is_null());
    claims
}

fn keys_of_file(folder: &Path, signers: &[&Signer]) -> JwksSource {
    let path = folder.join("keys.json");
    fs::write(&path, key_set(signers)).unwrap();
    JwksSource::File(path)
}

/// The status of a list of tasks, asked for with this token.
async fn status(server: &Server, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    exchange(server, Binding::JsonRpc, ("ListTasks", json!({})), &[("authorization", &bearer)]).await.0
}

#[tokio::test]
async fn tokens_of_every_algorithm_name_the_participant() {
    let signers = ["RS256", "PS256", "ES256", "EdDSA"]
        .map(|alg| Signer::new(if alg == "RS256" { "r" } else { alg }, alg));
    let folder = tempfile::tempdir().unwrap();
    let jwks = keys_of_file(folder.path(), &signers.each_ref());
    let server = start_with(|config| config.security = vec![scheme(jwks)]).await;
    for binding in BOTH {
        for signer in &signers {
            let aud = json!(["https://other.example", AUDIENCE]);
            for (index, others) in [json!({}), json!({"aud": aud, "nbf": null})].into_iter().enumerate() {
                let bearer = format!("bearer {}", signer.token(&claims(others)));
                let id = format!("{binding:?}{}{index}", signer.alg);
                let send = ("SendMessage", json!({"message": message(&id, "hello")}));
                let (code, _, body) = exchange(&server, binding, send, &[("authorization", &bearer)]).await;
                let task = task_or_text(binding, &body).unwrap();
                assert_eq!((code, &task["history"][0]["metadata"]["participant_id"]), (200, &json!("ada")));
            }
        }
    }
}

/// Tokens that admit nobody, each with what is wrong with it.
fn bad_tokens(signer: &Signer, stranger: &Signer) -> Vec<(&'static str, String)> {
    let with = |others: Value| signer.token(&claims(others));
    let header = |others: Value| {
        let mut header = json!({"alg": signer.alg, "kid": signer.kid, "typ": "JWT"});
        for (name, value) in others.as_object().unwrap() {
            header[name] = value.clone();
        }
        header
    };
    let headed = |others: Value| signer.token_with(&header(others), &claims(json!({})));
    let good = signer.token(&claims(json!({})));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let forged = unsigned(&header(json!({})), &claims(json!({"sub": "eve"})));
    let none = unsigned(&header(json!({"alg": "none"})), &claims(json!({})));
    let shared = |secret: &[u8]| {
        let text = unsigned(&header(json!({"alg": "HS256"})), &claims(json!({})));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
        format!("{text}.{}", encoded(tag.as_ref()))
    };
    let public = signer.jwk();
    vec![
        ("expired", with(json!({"exp": NOW - 61}))),
        ("never expires", with(json!({"exp": null}))),
        ("expires in words", with(json!({"exp": "tomorrow"}))),
        ("not yet valid", with(json!({"nbf": NOW + DAY}))),
        ("wrong issuer", with(json!({"iss": "https://issuer.example"}))),
        ("no issuer", with(json!({"iss": null}))),
        ("wrong audience", with(json!({"aud": "https://other.example"}))),
        ("wrong audiences", with(json!({"aud": ["https://other.example"]}))),
        ("no audience", with(json!({"aud": null}))),
        ("no participant", with(json!({"sub": null}))),
        ("a number as participant", with(json!({"sub": 7}))),
        ("empty participant", with(json!({"sub": ""}))),
        ("participant with a space", with(json!({"sub": "a b"}))),
        ("participant too long", with(json!({"sub": "x".repeat(257)}))),
        ("oversized", with(json!({"more": "x".repeat(8 << 10)}))),
        ("unknown key", headed(json!({"kid": "k-2"}))),
        ("no key id", headed(json!({"kid": null}))),
        ("algorithm of another key", headed(json!({"alg": "RS256"}))),
        ("unknown algorithm", headed(json!({"alg": "ES512"}))),
        ("another type of token", headed(json!({"typ": "logout+jwt"}))),
        ("critical extension", headed(json!({"crit": ["exp"]}))),
        ("none", format!("{none}.")),
        ("none with a signature", format!("{none}.{signature}")),
        ("public key as secret", shared(public["x"].as_str().unwrap().as_bytes())),
        ("public key's text as secret", shared(public.to_string().as_bytes())),
        ("tampered claims", format!("{forged}.{signature}")),
        ("tampered signature", format!("{signed}.{}", encoded(&[7; 64]))),
        ("no signature", format!("{signed}.")),
        ("padded signature", format!("{good}==")),
        ("two parts", signed.to_owned()),
        ("four parts", format!("{good}.")),
        ("no token", "..".to_owned()),
        ("another key of the same name", stranger.token(&claims(json!({})))),
        ("claims that are no object", signer.token(&json!(["ada"]))),
    ]
}

#[tokio::test]
async fn bad_tokens_admit_nobody_and_learn_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for alg in ["ES256", "EdDSA"] {
        let (signer, stranger) = (Signer::new("k-1", alg), Signer::new("k-1", alg));
        let jwks = keys_of_file(folder.path(), &[&signer]);
        let server = start_with(|config| config.security = vec![scheme(jwks)]).await;
        assert_eq!(status(&server, &signer.token(&claims(json!({})))).await, 200);
        let nothing = exchange(&server, Binding::JsonRpc, ("ListTasks", json!({})), &[]).await;
        assert_eq!((nothing.0, nothing.1.as_str()), (401, "Bearer realm=\"a2a\""));
        for (wrong, token) in bad_tokens(&signer, &stranger) {
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", bearer.as_str())];
            let refused = exchange(&server, Binding::JsonRpc, ("ListTasks", json!({})), &headers).await;
            assert_eq!(refused, nothing, "{alg}: {wrong}");
        }
        let bearer = format!("Bearer {}", stranger.token(&claims(json!({}))));
        for (binding, operation) in
            BOTH.into_iter().flat_map(|binding| OPERATIONS.map(|name| (binding, name)))
        {
            let params = json!({"message": message("m", "hello"), "id": "t", "taskId": "t"});
            let params = if operation == "ListTasks" { json!({}) } else { params };
            let headers = [("authorization", bearer.as_str())];
            assert_eq!(exchange(&server, binding, (operation, params), &headers).await.0, 401, "{operation}");
        }
        assert!(server.engine.started().is_empty());
    }
}

#[tokio::test]
async fn assertions_agree_with_the_claim() {
    let signer = Signer::new("k-1", "EdDSA");
    let folder = tempfile::tempdir().unwrap();
    let jwks = keys_of_file(folder.path(), &[&signer]);
    let server = start_with(|config| config.security = vec![scheme(jwks)]).await;
    let ada = format!("Bearer {}", signer.token(&claims(json!({}))));
    let own = format!("Bearer {}", signer.token(&claims(json!({"sub": "me"}))));
    let other = "not the one that signed in";
    let table = [
        (&ada, "", "ada", Ok("ada")),
        (&ada, "ada", "", Ok("ada")),
        (&ada, "bob", "", Err(other)),
        (&ada, "", "bob", Err(other)),
        (&own, "", "", Err("this agent itself")),
    ];
    for binding in BOTH {
        for (index, (bearer, metadata, header, expected)) in table.into_iter().enumerate() {
            let mut sent = message(&format!("{binding:?}{index}"), "hello");
            sent["metadata"] = json!({"participant_id": metadata});
            let headers = [("authorization", bearer.as_str()), ("x-participant-id", header)];
            let send = ("SendMessage", json!({"message": sent}));
            let (_, _, body) = exchange(&server, binding, send, &headers).await;
            match (task_or_text(binding, &body), expected) {
                (Ok(task), Ok(id)) => assert_eq!(task["history"][0]["metadata"]["participant_id"], id),
                (Err(text), Err(expected)) => assert!(text.contains(expected), "{index}: {text}"),
                (got, _) => panic!("{index}: {got:?}"),
            }
        }
    }
}

#[tokio::test]
async fn signed_and_known_tokens_stand_beside_each_other() {
    let signer = Signer::new("k-1", "ES256");
    let folder = tempfile::tempdir().unwrap();
    let jwks = keys_of_file(folder.path(), &[&signer]);
    let known =
        StaticToken { secret: Secret::new("bob-token-0123456"), participant: ParticipantId::from("bob") };
    let both = |config: &mut A2aConfig| {
        config.security = vec![SecurityScheme::Bearer { tokens: vec![known] }, scheme(jwks)];
    };
    let server = start_with(both).await;
    assert_eq!(status(&server, "bob-token-0123456").await, 200);
    assert_eq!(status(&server, &signer.token(&claims(json!({})))).await, 200);
    assert_eq!(status(&server, "bob-token-0123457").await, 401);
    let card = server.http.get(format!("{}/.well-known/agent-card.json", server.base)).send().await.unwrap();
    let card: Value = serde_json::from_str(&card.text().await.unwrap()).unwrap();
    let schemes = json!({
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
        "jwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
    });
    assert_eq!(card["securitySchemes"], schemes);
    assert_eq!(card["securityRequirements"].as_array().map(Vec::len), Some(2));
}

/// Repeats a request until it is answered with this status. The clock goes on with every request.
async fn until(server: &Server, token: &str, expected: u16) {
    let answered = async { while status(server, token).await != expected {} };
    assert!(tokio::time::timeout(PATIENCE, answered).await.is_ok(), "never answered with {expected}");
}

#[tokio::test]
async fn keys_change_without_a_restart() {
    let [first, old, new] = ["first", "old", "new"].map(|kid| Signer::new(kid, "EdDSA"));
    let [with_first, with_old, with_new] =
        [&first, &old, &new].map(|signer| signer.token(&claims(json!({}))));
    let issuer = Issuer::showing(key_set(&[&first])).await;
    let jwks = JwksSource::Url(issuer.url.clone());
    let server = start_with(|config| config.security = vec![scheme(jwks)]).await;
    assert_eq!(status(&server, &with_first).await, 200);
    // A token with an unknown key has the keys loaded, at once after a start.
    issuer.answer(200, key_set(&[&old]));
    assert_eq!(status(&server, &with_old).await, 401);
    // Every request moves the clock, so none is made until the issuer was asked.
    let asked = async {
        while issuer.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "the issuer is not asked again");
    until(&server, &with_old, 200).await;
    assert_eq!(status(&server, &with_first).await, 401);
    issuer.answer(200, key_set(&[&new]));
    // Within a minute of that nothing is loaded, whatever tokens name.
    for _ in 0..8 {
        assert_eq!(status(&server, &with_new).await, 401);
    }
    assert_eq!(status(&server, &with_old).await, 200);
    assert_eq!(issuer.asked().len(), 2);
    until(&server, &with_new, 200).await;
    assert_eq!(issuer.asked().len(), 3);
    assert_eq!(status(&server, &with_old).await, 401);
    // After an hour keys are loaded though all are known.
    issuer.answer(200, key_set(&[&old]));
    until(&server, &with_new, 401).await;
    assert_eq!(issuer.asked().len(), 4);
}

#[tokio::test]
async fn keys_stay_when_the_issuer_fails() {
    let [old, new] = ["old", "new"].map(|kid| Signer::new(kid, "EdDSA"));
    let [with_old, with_new] = [&old, &new].map(|signer| signer.token(&claims(json!({}))));
    let issuer = Issuer::showing("not yet".to_owned()).await;
    let jwks = JwksSource::Url(issuer.url.clone());
    let server = start_with(|config| config.security = vec![scheme(jwks)]).await;
    // Without any key nobody is admitted; the issuer is asked again soon.
    assert_eq!(status(&server, &with_old).await, 401);
    issuer.answer(200, key_set(&[&old]));
    until(&server, &with_old, 200).await;
    let new_keys = key_set(&[&new]);
    let padded = format!("{new_keys}{}", " ".repeat(256 << 10));
    let many = json!({"keys": vec![new.jwk(); 65]}).to_string();
    let failures = [(500, &new_keys), (302, &new_keys), (201, &new_keys), (200, &padded), (200, &many)];
    for (code, document) in failures {
        issuer.answer(code, document.clone());
        let before = issuer.asked().len();
        let asked = async {
            while issuer.asked().len() == before {
                assert_eq!(status(&server, &with_new).await, 401, "{code}");
            }
        };
        assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "the issuer is never asked again");
        assert_eq!(status(&server, &with_old).await, 200, "{code}");
    }
    issuer.answer(200, new_keys);
    until(&server, &with_new, 200).await;
    assert!(issuer.asked().iter().all(|path| path == "/keys"), "{:?}", issuer.asked());
}
