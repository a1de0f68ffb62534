//! The push key: what the harness seals other people's credentials with, and proves its own requests with.

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use harness_model::{MASK, Secret};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    hkdf::{HKDF_SHA256, Salt},
    hmac,
    rand::{SecureRandom, SystemRandom},
};

/// Lengths that a key may have. Unit: bytes.
const KEY_BYTES: [usize; 3] = [16, 24, 32];
/// What the two derived keys are for. Changing a text makes what was sealed or signed before unreadable.
const SALT: &[u8] = b"tiny-harness push key v1";
const SEALING: &[u8] = b"push config v1: AES-256-GCM";
const PROOF: &[u8] = b"own request v1: HMAC-SHA-256";

/// The key, as two keys derived from it. Clones share them; nothing shows them.
#[derive(Clone)]
pub struct PushKey {
    keys: Arc<Keys>,
}

struct Keys {
    sealing: LessSafeKey,
    proof: hmac::Key,
}

impl fmt::Debug for PushKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushKey({MASK})")
    }
}

/// A text that is not a push key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a push key is standard base64 of 16, 24 or 32 random bytes")]
pub struct InvalidPushKey;

/// A sealed value that does not open: it was changed, belongs elsewhere, or was sealed with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sealed value does not open with this push key")]
pub(crate) struct Unsealable;

impl From<Unspecified> for Unsealable {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

impl PushKey {
    /// Reads a key: standard base64 of 16, 24 or 32 bytes, white space around it ignored.
    pub fn from_base64(text: &Secret) -> Result<Self, InvalidPushKey> {
        let raw = BASE64_STANDARD.decode(text.reveal().trim()).map_err(|_| InvalidPushKey)?;
        if !KEY_BYTES.contains(&raw.len()) {
            return Err(InvalidPushKey);
        }
        let root = Salt::new(HKDF_SHA256, SALT).extract(&raw);
        let sealing = root.expand(&[SEALING], &AES_256_GCM).map_err(|Unspecified| InvalidPushKey)?;
        let proof = root.expand(&[PROOF], hmac::HMAC_SHA256).map_err(|Unspecified| InvalidPushKey)?;
        let keys =
            Keys { sealing: LessSafeKey::new(UnboundKey::from(sealing)), proof: hmac::Key::from(proof) };
        Ok(Self { keys: Arc::new(keys) })
    }

    /// A new key of 32 random bytes, in the form that [`PushKey::from_base64`] reads.
    /// Errors: the operating system gives no random bytes.
    pub fn generate() -> Result<Secret, std::io::Error> {
        let mut raw = [0; 32];
        let filled = SystemRandom::new().fill(&mut raw);
        filled.map_err(|Unspecified| std::io::Error::other("the system gives no random bytes"))?;
        Ok(Secret::new(BASE64_STANDARD.encode(raw)))
    }

    /// Encrypts; what comes out opens only with the same `bound_to`.
    pub(crate) fn seal(&self, bound_to: &str, plain: &[u8]) -> Result<String, Unsealable> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce)?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(bound_to.as_bytes());
        let sealing = &self.keys.sealing;
        sealing.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)?;
        Ok(BASE64_STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts what [`PushKey::seal`] made.
    pub(crate) fn open(&self, bound_to: &str, sealed: &str) -> Result<Vec<u8>, Unsealable> {
        let bytes = BASE64_STANDARD.decode(sealed).map_err(|_| Unsealable)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(Unsealable)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce)?;
        let mut sealed = sealed.to_vec();
        let plain = self.keys.sealing.open_in_place(nonce, Aad::from(bound_to.as_bytes()), &mut sealed)?;
        Ok(plain.to_vec())
    }

    /// Authenticates a text.
    pub(crate) fn tag(&self, text: &str) -> hmac::Tag {
        hmac::sign(&self.keys.proof, text.as_bytes())
    }

    /// Whether a tag is that of a text, in a time that does not depend on either.
    pub(crate) fn has_tag(&self, text: &str, tag: &[u8]) -> bool {
        hmac::verify(&self.keys.proof, text.as_bytes(), tag).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8, bytes: usize) -> PushKey {
        PushKey::from_base64(&Secret::new(BASE64_STANDARD.encode(vec![byte; bytes]))).unwrap()
    }

    #[test]
    fn keys_of_three_lengths_are_read_and_nothing_else() {
        for bytes in [16, 24, 32] {
            assert_eq!(format!("{:?}", key(1, bytes)), "PushKey([REDACTED])");
        }
        for wrong in ["", "AAAA", "not base64!", &BASE64_STANDARD.encode([0; 33])] {
            assert_eq!(PushKey::from_base64(&Secret::new(wrong)).unwrap_err(), InvalidPushKey);
        }
        let made = PushKey::generate().unwrap();
        assert_ne!(made, PushKey::generate().unwrap());
        PushKey::from_base64(&Secret::new(format!(" {}\n", made.reveal()))).unwrap();
    }

    #[test]
    fn what_is_sealed_opens_only_where_it_belongs() {
        let (own, other) = (key(1, 32), key(2, 32));
        let sealed = own.seal("here", b"the token").unwrap();
        assert!(!sealed.contains("token"));
        assert_ne!(own.seal("here", b"the token").unwrap(), sealed, "never the same bytes twice");
        assert_eq!(own.open("here", &sealed).unwrap(), b"the token");
        assert_eq!(key(1, 32).open("here", &sealed).unwrap(), b"the token", "the same key after a restart");
        assert!(own.open("there", &sealed).is_err() && other.open("here", &sealed).is_err());
        let mut bytes = BASE64_STANDARD.decode(&sealed).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        for broken in [BASE64_STANDARD.encode(bytes), "AAAA".to_owned(), String::new(), "!".to_owned()] {
            assert_eq!(own.open("here", &broken), Err(Unsealable));
        }
    }
}
