//! The key that seals push credentials and proves the harness's own requests.

use std::{
    fs::OpenOptions,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use harness_a2a::PushKey;
use harness_model::Secret;

use crate::{config::Config, failure::Failure};

/// Bytes of a key file; a key is much shorter.
const KEY_FILE_BYTES_MAX: u64 = 1_024;

/// The configured key, otherwise the one beside the store, made once. The store's lock is held: nobody else makes one.
pub(crate) fn key(config: &Config) -> Result<PushKey, Failure> {
    let path = config.store.sqlite_path.with_extension("push-key");
    let text = match &config.secrets.push_key {
        Some(key) => key.clone(),
        None => kept(&path).map_err(|error| {
            Failure::general(format!("cannot keep the push key in {}: {error}", path.display()))
        })?,
    };
    PushKey::from_base64(&text).map_err(|_| {
        Failure::general(format!(
            "{} holds no push key; restore the file, or set TINY_HARNESS_PUSH_KEY",
            path.display()
        ))
    })
}

fn kept(path: &Path) -> io::Result<Secret> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let key = PushKey::generate()?;
            file.write_all(key.reveal().as_bytes())?;
            file.sync_all()?;
            tracing::info!(
                "TINY_HARNESS_PUSH_KEY is not set: a key was made and is kept in {}",
                path.display()
            );
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut text = String::new();
            OpenOptions::new().read(true).open(path)?.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text)?;
            Ok(Secret::new(text))
        }
        Err(error) => Err(error),
    }
}
