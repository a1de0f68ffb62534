//! The issuer's keys: loaded at the start, and again when a token names a key that is not known.

use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use harness_model::Timestamp;
use harness_ports::TaskGroup;
use http::{StatusCode, header::ACCEPT};
use reqwest::Url;
use tokio::{fs::File, io::AsyncReadExt, sync::Notify};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::verifying_key::VerifyingKey;
use crate::address_guard::client_builder;

/// Bytes of a key set.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// Time to connect to the issuer.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time of a whole load.
const LOAD_TIME: Duration = Duration::from_secs(10);
/// Time between two loads, however many unknown keys tokens name meanwhile.
const PAUSE: Duration = Duration::from_secs(60);
/// The same while there is no key at all.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(5);
/// Age from which keys are loaded again though all are known, so that those that the issuer has withdrawn go.
const FRESH: Duration = Duration::from_secs(3_600);

/// Where the issuer's public keys are: a JSON Web Key Set of at most 256 KiB and 64 keys. Source: RFC 7517.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwksSource {
    /// An `https` address, or `http` with a literal loopback address as its host. Redirects are not followed.
    Url(String),
    /// A file.
    File(PathBuf),
}

/// Why keys cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    /// The address is not one that keys may come from.
    #[error(
        "a key set comes from an https address without user information, or from http on a literal loopback address"
    )]
    Address,
    /// The HTTP client cannot be built.
    #[error("the HTTP client for key sets cannot be built")]
    Client(#[source] reqwest::Error),
    /// They cannot be loaded now; the text says why.
    #[error("{0}")]
    Load(String),
}

impl JwksSource {
    /// Whether keys may come from here. Errors: [`JwksError::Address`]. Nothing is loaded.
    pub fn check(&self) -> Result<(), JwksError> {
        match self {
            Self::Url(text) => address(text).map(drop),
            Self::File(_) => Ok(()),
        }
    }

    /// Loads the keys once, as serving does, for at most 10 seconds: how many of them can verify tokens; at least one.
    /// The process must have installed a TLS provider. Errors: see [`JwksError`].
    pub async fn count_keys(&self) -> Result<usize, JwksError> {
        self.check()?;
        let loaded = self.load(&client()?).await;
        loaded.map(|keys| keys.len()).map_err(|error| JwksError::Load(told(&error)))
    }

    async fn load(&self, http: &reqwest::Client) -> Result<Vec<VerifyingKey>, KeySetError> {
        let loaded = tokio::time::timeout(LOAD_TIME, self.document(http)).await;
        VerifyingKey::read_set(&loaded.unwrap_or(Err(KeySetError::TimedOut))?)
    }

    async fn document(&self, http: &reqwest::Client) -> Result<Vec<u8>, KeySetError> {
        match self {
            Self::Url(url) => fetch(http, url).await,
            Self::File(path) => {
                let file = File::open(path).await.map_err(KeySetError::File)?;
                let mut bytes = Vec::new();
                let mut capped = file.take(DOCUMENT_BYTES_MAX as u64 + 1);
                capped.read_to_end(&mut bytes).await.map_err(KeySetError::File)?;
                if bytes.len() > DOCUMENT_BYTES_MAX { Err(KeySetError::TooLarge) } else { Ok(bytes) }
            }
        }
    }
}

fn client() -> Result<reqwest::Client, JwksError> {
    client_builder(CONNECT_TIME).timeout(LOAD_TIME).build().map_err(JwksError::Client)
}

/// An error and its first cause; what lies between the two names layers of this program.
fn told(error: &KeySetError) -> String {
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

fn address(text: &str) -> Result<Url, JwksError> {
    let url = Url::parse(text).map_err(|_| JwksError::Address)?;
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_loopback = host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let is_safe = match url.scheme() {
        "https" => !host.is_empty(),
        "http" => is_loopback,
        _ => false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none();
    (is_safe && is_plain).then_some(url).ok_or(JwksError::Address)
}

/// Why a load has failed; for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeySetError {
    #[error("the issuer cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the issuer answers with status {0}")]
    Status(StatusCode),
    #[error("the file cannot be read")]
    File(#[source] std::io::Error),
    #[error("the key set is larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("loading takes longer than {LOAD_TIME:?}")]
    TimedOut,
    #[error("this is no key set")]
    NoKeySet(#[source] serde_json::Error),
    #[error("the key set has more than {max} keys")]
    TooManyKeys { max: usize },
    #[error("the key set has no key with an id that can verify tokens")]
    NoUsableKey,
}

/// The keys that are known now.
pub(super) struct KeySet {
    source: JwksSource,
    state: Mutex<State>,
    wanted: Notify,
}

struct State {
    keys: Arc<[VerifyingKey]>,
    /// When keys were last loaded or asked for.
    asked_at: Option<Timestamp>,
    /// The same, the load at the start not counted.
    asked_again_at: Option<Timestamp>,
}

impl KeySet {
    /// Without any key; nothing is verified until they are loaded.
    pub(super) fn new(source: JwksSource) -> Self {
        let state = State { keys: Arc::new([]), asked_at: None, asked_again_at: None };
        Self { source, state: Mutex::new(state), wanted: Notify::new() }
    }

    pub(super) fn keys(&self) -> Arc<[VerifyingKey]> {
        Arc::clone(&self.state().keys)
    }

    /// Asks for the keys again, if the last time is long enough ago.
    pub(super) fn refresh(&self, now: Timestamp, wanted: Wanted) {
        let mut state = self.state();
        let (last, pause) = match wanted {
            Wanted::Unknown if state.keys.is_empty() => (state.asked_at, PAUSE_WITHOUT_KEYS),
            // A key that is new since the start is not waited for.
            Wanted::Unknown => (state.asked_again_at, PAUSE),
            Wanted::Known => (state.asked_at, FRESH),
        };
        if last.is_some_and(|at| now.since(at) < pause) {
            return;
        }
        state.asked_at = Some(now);
        state.asked_again_at = Some(now);
        self.wanted.notify_one();
    }

    /// Loads the keys, and from then on in the background whenever they are wanted. When a load fails, the log says
    /// why, and the keys stay as they are. Errors: see [`JwksError`].
    pub(super) async fn follow(self: &Arc<Self>, now: Timestamp, group: &TaskGroup) -> Result<(), JwksError> {
        self.source.check()?;
        let http = client()?;
        self.state().asked_at = Some(now);
        self.load(&http).await;
        let keys = Arc::clone(self);
        let stop = group.stop_token().clone();
        group.spawn(async move { keys.reload(&http, &stop).await });
        Ok(())
    }

    async fn reload(&self, http: &reqwest::Client, stop: &CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.wanted.notified() => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.load(http) => {}
            }
        }
    }

    async fn load(&self, http: &reqwest::Client) {
        match self.source.load(http).await {
            Ok(keys) => {
                info!(source = ?self.source, keys = keys.len(), "keys of the token issuer loaded");
                self.state().keys = keys.into();
            }
            Err(error) => {
                let error = told(&error);
                warn!(source = ?self.source, error, "keys of the token issuer not loaded; the old ones stay");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What makes keys wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// A token whose key is not known.
    Unknown,
    /// A token whose key is known; it may have been withdrawn.
    Known,
}

async fn fetch(http: &reqwest::Client, url: &str) -> Result<Vec<u8>, KeySetError> {
    // The address is in the log already.
    let unreachable = |error: reqwest::Error| KeySetError::Unreachable(error.without_url());
    let request = http.get(url).header(ACCEPT, "application/jwk-set+json, application/json");
    let mut response = request.send().await.map_err(unreachable)?;
    if response.status() != StatusCode::OK {
        return Err(KeySetError::Status(response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > DOCUMENT_BYTES_MAX {
            return Err(KeySetError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_safe_addresses() {
        for good in
            ["https://a.example/k?x=1", "https://10.0.0.1/k", "http://127.0.0.1:1/k", "http://[::1]/k"]
        {
            assert!(JwksSource::Url(good.to_owned()).check().is_ok(), "{good}");
        }
        let bad =
            ["http://a.example/k", "http://localhost/k", "https://u@a.example/", "https://u:p@a.example/"];
        for bad in bad.into_iter().chain(["ftp://127.0.0.1/k", "file:///k", "k.json", "", "http://10.0.0.1/"])
        {
            assert!(JwksSource::Url(bad.to_owned()).check().is_err(), "{bad}");
        }
    }
}
