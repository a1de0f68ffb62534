//! The connection to a Temporal frontend.

use std::{fmt, time::Duration};

use harness_model::{ErrorCode, codes};
use temporalio_client::{Client, ClientOptions, ClientTlsOptions, Connection, ConnectionOptions, TlsOptions};
use tokio::time::Instant;

/// Longest that one try may take, and the time after which there is no other.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A server that is starting says so; it is asked again this often.
const RETRY_WAIT: Duration = Duration::from_millis(100);

/// Where the server is, and how to talk to it.
#[derive(Clone)]
pub struct Address {
    /// `host:port`.
    pub target: String,
    /// Namespace of the workflows.
    pub namespace: String,
    /// `None`: in the clear, for a server on this machine or behind something that encrypts.
    pub tls: Option<Tls>,
    /// For Temporal Cloud. Secret.
    pub api_key: Option<String>,
    /// Names this process to the server.
    pub identity: String,
}

/// Encryption, and who we are.
#[derive(Clone, Default)]
pub struct Tls {
    /// PEM of the authority that signed the server's certificate; `None`: those of the operating system.
    pub server_ca: Option<Vec<u8>>,
    /// Name to check the server's certificate against; `None`: that of the address.
    pub server_name: Option<String>,
    /// PEM of our certificate and of its key, for mutual TLS. Secret.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Address");
        shown.field("target", &self.target).field("namespace", &self.namespace);
        shown.field("tls", &self.tls.is_some()).field("api_key", &self.api_key.is_some()).finish()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address makes no sense.
    #[error("{target:?} is not an address of a Temporal server; write host:port")]
    Address {
        /// As it was given.
        target: String,
    },
    /// Nobody answers there, or not as a Temporal server.
    #[error("no Temporal server answers at {target}: {reason}")]
    Unreachable {
        /// As it was given.
        target: String,
        /// What the client says.
        reason: String,
    },
}

impl ConnectError {
    /// The stable code for people.
    pub fn code(&self) -> ErrorCode {
        codes::HARNESS_ERROR
    }
}

/// Connects. Errors: see [`ConnectError`]; takes at most a few seconds.
pub(crate) async fn connect(address: &Address) -> Result<Client, ConnectError> {
    let scheme = if address.tls.is_some() || address.api_key.is_some() { "https" } else { "http" };
    let bad = || ConnectError::Address { target: address.target.clone() };
    let target: temporalio_client::Url =
        format!("{scheme}://{}", address.target).parse().map_err(|_| bad())?;
    let tls = address.tls.as_ref().map(|tls| {
        let client = tls.client.clone().map(|(certificate, key)| {
            ClientTlsOptions::builder().client_cert(certificate).client_private_key(key).build()
        });
        TlsOptions::builder()
            .maybe_server_root_ca_cert(tls.server_ca.clone())
            .maybe_domain(tls.server_name.clone())
            .maybe_client_tls_options(client)
            .build()
    });
    let options = ConnectionOptions::new(target)
        .identity(address.identity.clone())
        .maybe_tls_options(tls)
        .maybe_api_key(address.api_key.clone())
        .connect_timeout(CONNECT_LIMIT)
        .build();
    let unreachable = |error: &dyn fmt::Display| ConnectError::Unreachable {
        target: address.target.clone(),
        reason: error.to_string(),
    };
    let begun = Instant::now();
    let connection = loop {
        match Connection::connect(options.clone()).await {
            Ok(connection) => break connection,
            Err(error) if begun.elapsed() >= CONNECT_LIMIT => return Err(unreachable(&error)),
            Err(error) => {
                tracing::debug!(target = address.target, %error, "no connection yet");
                tokio::time::sleep(RETRY_WAIT).await;
            }
        }
    };
    Client::new(connection, ClientOptions::new(address.namespace.clone()).build())
        .map_err(|error| unreachable(&error))
}
