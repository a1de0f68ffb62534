//! An issuer of signed tokens: its keys, and a server that shows the public ones.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::State,
    http::{Uri, header::LOCATION},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use harness_ports::TaskGroup;
use http::StatusCode;
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RSA_PSS_SHA256, RsaKeyPair,
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A key of this test alone: making one of this kind takes a library that is not here.
const RSA: &[u8] = include_bytes!("../fixtures/rsa-2048.pkcs8.der");

/// A private key with its id and its algorithm.
pub(crate) struct Signer {
    pub(crate) kid: &'static str,
    pub(crate) alg: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// A key for `RS256`, `PS256`, `ES256` or else `EdDSA`; new, unless it is for RSA.
    pub(crate) fn new(kid: &'static str, alg: &'static str) -> Self {
        let random = SystemRandom::new();
        let pair = match alg {
            "RS256" | "PS256" => Pair::Rsa(RsaKeyPair::from_pkcs8(RSA).unwrap()),
            "ES256" => {
                let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let document = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
                Pair::P256(EcdsaKeyPair::from_pkcs8(curve, document.as_ref(), &random).unwrap())
            }
            _ => {
                let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Pair::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
            }
        };
        Self { kid, alg, pair }
    }

    /// The public key.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": encoded(&public.n), "e": encoded(&public.e)})
            }
            Pair::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y)})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref())})
            }
        };
        jwk["kid"] = json!(self.kid);
        jwk["use"] = json!("sig");
        jwk
    }

    /// A token as this issuer makes them.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.alg, "kid": self.kid, "typ": "JWT"}), claims)
    }

    /// A token with this header, signed with this key by its algorithm, whatever the header says.
    pub(crate) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let text = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let padding: &dyn ring::signature::RsaEncoding =
                    if self.alg == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, text.as_bytes(), &mut signature).unwrap();
                signature
            }
            Pair::P256(pair) => pair.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        };
        format!("{text}.{}", encoded(&signature))
    }
}

/// Header and claims of a token, as they are signed.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()))
}

pub(crate) fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// A key set of these keys, as text.
pub(crate) fn key_set(signers: &[&Signer]) -> String {
    json!({"keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>()}).to_string()
}

/// A server that shows a key set.
pub(crate) struct Issuer {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _group: TaskGroup,
}

struct Shared {
    answer: Mutex<(StatusCode, String)>,
    /// Paths that were asked for.
    asked: Mutex<Vec<String>>,
}

impl Issuer {
    pub(crate) async fn showing(document: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let answer = Mutex::new((StatusCode::OK, document));
        let shared = Arc::new(Shared { answer, asked: Mutex::default() });
        let router = Router::new().fallback(answer_with).with_state(Arc::clone(&shared));
        let group = TaskGroup::new();
        group.spawn(harness_a2a::serve(listener, router, group.stop_token().clone(), group.clone()));
        Self { url, shared, _group: group }
    }

    /// Answers with this from now on.
    pub(crate) fn answer(&self, status: u16, document: String) {
        *self.shared.answer.lock().unwrap() = (StatusCode::from_u16(status).unwrap(), document);
    }

    /// Paths that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }
}

async fn answer_with(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    shared.asked.lock().unwrap().push(uri.path().to_owned());
    let (status, document) = shared.answer.lock().unwrap().clone();
    (status, [(LOCATION, "/elsewhere")], document).into_response()
}
