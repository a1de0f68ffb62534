//! Public keys of a JSON Web Key Set, and the signatures they verify. Sources: RFC 7517, RFC 7518, RFC 8037.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

use super::key_set::KeySetError;

/// Keys of one set.
const KEYS_MAX: usize = 64;
/// Bytes of a coordinate on P-256 and of an Ed25519 key.
const COORDINATE_BYTES: usize = 32;
/// First byte of an uncompressed point. Source: SEC 1 section 2.3.3.
const UNCOMPRESSED: u8 = 4;

/// The signatures that count: asymmetric ones only, so that no public key can serve as a shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    EdDsa,
}

impl Algorithm {
    /// By its name in a header or a key. `Ed25519` is what RFC 9864 calls the one EdDSA curve that is supported.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A public key with the name that tokens call it by.
#[derive(Debug)]
pub(super) struct VerifyingKey {
    kid: String,
    /// The only algorithm the key is meant for, when the set says so.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A set as it is written. Members that are not known are ignored, as RFC 7517 section 5 wants it.
#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl VerifyingKey {
    /// The keys of a set that can verify tokens; the others are passed over.
    /// Errors: no key set, too many keys, or none of use.
    pub(super) fn read_set(bytes: &[u8]) -> Result<Vec<Self>, KeySetError> {
        let document: Document = serde_json::from_slice(bytes).map_err(KeySetError::NoKeySet)?;
        if document.keys.len() > KEYS_MAX {
            return Err(KeySetError::TooManyKeys { max: KEYS_MAX });
        }
        let keys: Vec<Self> = document.keys.into_iter().filter_map(Self::read).collect();
        if keys.is_empty() { Err(KeySetError::NoUsableKey) } else { Ok(keys) }
    }

    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let for_signatures = jwk.r#use.as_ref().is_none_or(|purpose| purpose == "sig")
            && jwk.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|name| name == "verify"));
        if !for_signatures {
            return None;
        }
        let algorithm = match &jwk.alg {
            Some(name) => Some(Algorithm::named(name)?),
            None => None,
        };
        Some(Self { material: Material::of(&jwk)?, kid: jwk.kid?, algorithm })
    }

    /// Whether tokens with this key id and algorithm are for this key.
    pub(super) fn is_for(&self, kid: &str, algorithm: Algorithm) -> bool {
        self.kid == kid
            && self.algorithm.is_none_or(|only| only == algorithm)
            && match (&self.material, algorithm) {
                (Material::Rsa(_), Algorithm::Rs256 | Algorithm::Ps256)
                | (Material::P256(_), Algorithm::Es256)
                | (Material::Ed25519(_), Algorithm::EdDsa) => true,
                (Material::Rsa(_) | Material::P256(_) | Material::Ed25519(_), _) => false,
            }
    }

    /// Whether the signature is this key's, by this algorithm. RSA keys below 2048 bits verify nothing.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, algorithm) {
            (Material::Rsa(key), Algorithm::Rs256) => {
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Material::Rsa(key), Algorithm::Ps256) => {
                key.verify(&signature::RSA_PSS_2048_8192_SHA256, message, signature)
            }
            (Material::P256(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Material::Ed25519(key), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature)
            }
            (Material::Rsa(_) | Material::P256(_) | Material::Ed25519(_), _) => return false,
        };
        verified.is_ok()
    }
}

impl Material {
    fn of(jwk: &Jwk) -> Option<Self> {
        match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (number(jwk.n.as_ref()?)?, number(jwk.e.as_ref()?)?);
                Some(Self::Rsa(RsaPublicKeyComponents { n, e }))
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (coordinate(jwk.x.as_ref()?)?, coordinate(jwk.y.as_ref()?)?);
                Some(Self::P256([&[UNCOMPRESSED], x.as_slice(), y.as_slice()].concat()))
            }
            ("OKP", Some("Ed25519")) => Some(Self::Ed25519(coordinate(jwk.x.as_ref()?)?)),
            _ => None,
        }
    }
}

/// A big-endian number without the zeros that some issuers put before it.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let digits: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    (!digits.is_empty()).then_some(digits)
}

fn coordinate(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == COORDINATE_BYTES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(keys: Value) -> Result<usize, String> {
        let document = json!({"keys": keys, "more": 1}).to_string();
        VerifyingKey::read_set(document.as_bytes()).map(|keys| keys.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_that_cannot_verify_tokens_are_passed_over() {
        let zeros = BASE64_URL_SAFE_NO_PAD.encode([0; 32]);
        let good = json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": zeros});
        let with = |member: &str, value: Value| {
            let mut key = good.clone();
            key[member] = value;
            key
        };
        let useless = [
            json!(1),
            json!({"kty": "oct", "kid": "a", "k": "AAAA"}),
            json!({"kty": "OKP", "crv": "Ed25519", "x": zeros}),
            json!({"kty": "EC", "crv": "P-256", "kid": "a", "x": zeros}),
            with("use", json!("enc")),
            with("key_ops", json!(["sign"])),
            with("alg", json!("HS256")),
            with("crv", json!("X25519")),
            with("x", json!("AAAA")),
        ];
        for key in useless {
            assert_eq!(count(json!([good, key])), Ok(1), "{key}");
        }
        assert_eq!(count(json!([with("use", json!("sig")), with("alg", json!("EdDSA"))])), Ok(2));
        assert!(count(json!([])).is_err());
        assert!(count(json!(vec![good.clone(); KEYS_MAX])).is_ok());
        assert!(count(json!(vec![good; KEYS_MAX + 1])).is_err());
        assert!(VerifyingKey::read_set(b"[]").is_err());
    }
}
