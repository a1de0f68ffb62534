//! The environment: the only place secrets come from.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use harness_model::Secret;

use super::reader::Reader;

/// Bytes that a push key may have.
const PUSH_KEY_BYTES: [usize; 3] = [16, 24, 32];

/// The variables of the process. An empty value counts as unset.
#[derive(Clone, Copy)]
pub(super) struct Environment<'a>(pub(super) &'a BTreeMap<String, String>);

impl Environment<'_> {
    /// Whether a variable is set.
    pub(super) fn has(self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_empty())
    }

    /// A key that travels in an HTTP header. A value that cannot is a problem, and is never shown.
    pub(super) fn secret(self, name: &str, reader: &mut Reader<'_>) -> Option<Secret> {
        let value = self.0.get(name).filter(|value| !value.is_empty())?;
        if value.bytes().all(|b| (0x21..0x7f).contains(&b)) {
            let secret = Secret::new(value.as_str());
            reader.secrets.insert(name.to_owned(), secret.clone());
            return Some(secret);
        }
        reader.refuse_variable(
            name,
            format!("{name} holds spaces, line breaks or characters that no key has"),
            "set it to the key alone, without quotes and without a line break".to_owned(),
        );
        None
    }

    /// A password: any text of one line.
    pub(super) fn password(self, name: &str, reader: &mut Reader<'_>) -> Option<Secret> {
        let value = self.0.get(name).filter(|value| !value.is_empty())?;
        if value.chars().any(char::is_control) || value.chars().count() > PASSWORD_CHARS_MAX {
            let message = format!("{name} holds line breaks or other control characters, or is too long");
            reader.refuse_variable(name, message, "set it to the password alone".to_owned());
            return None;
        }
        let secret = Secret::new(value.as_str());
        reader.secrets.insert(name.to_owned(), secret.clone());
        Some(secret)
    }
}

/// Characters of a password.
const PASSWORD_CHARS_MAX: usize = 1_024;

/// Secrets besides those of the providers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Secrets {
    /// Base64 of 16, 24 or 32 bytes; encrypts push credentials and signs the harness's own calls.
    pub(crate) push_key: Option<Secret>,
    /// Langfuse, public half.
    pub(crate) langfuse_public_key: Option<Secret>,
    /// Langfuse, secret half.
    pub(crate) langfuse_secret_key: Option<Secret>,
}

/// Reads the secrets that belong to no provider.
pub(super) fn read(environment: Environment<'_>, reader: &mut Reader<'_>) -> Secrets {
    const PUSH_KEY: &str = "TINY_HARNESS_PUSH_KEY";
    let push_key = environment.secret(PUSH_KEY, reader);
    let valid =
        |key: &Secret| STANDARD.decode(key.reveal()).is_ok_and(|bytes| PUSH_KEY_BYTES.contains(&bytes.len()));
    if push_key.as_ref().is_some_and(|key| !valid(key)) {
        reader.refuse_variable(
            PUSH_KEY,
            format!("{PUSH_KEY} is not base64 of 16, 24 or 32 bytes"),
            "make one with `openssl rand -base64 32`".to_owned(),
        );
    }
    Secrets {
        push_key,
        langfuse_public_key: environment.secret("LANGFUSE_PUBLIC_KEY", reader),
        langfuse_secret_key: environment.secret("LANGFUSE_SECRET_KEY", reader),
    }
}
