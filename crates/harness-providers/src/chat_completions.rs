//! Any server that speaks OpenAI's Chat Completions.

mod answer;
mod call;
mod fragments;
mod request;
mod wire;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use harness_model::Secret;
use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};
use http::{HeaderMap, HeaderValue, header};
use reqwest::{Client, ClientBuilder, Url, redirect};

use crate::{BaseUrlError, base_url::parse_base_url, http_failure::Failures};
use call::Call;

/// How long opening a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// One Chat Completions endpoint.
#[derive(Clone, Debug)]
pub struct ChatCompletionsConfig {
    /// Name of the provider in the configuration; errors and answers carry it.
    pub name: String,
    /// Where `/chat/completions` is appended. Rules: [`crate::check_base_url`].
    pub base_url: String,
    /// Sent as a bearer token. `None`: no `authorization` header at all.
    pub api_key: Option<Secret>,
    /// Default model, sent verbatim.
    pub model: String,
    /// Models that a request may choose besides the default one.
    pub models: Vec<String>,
    /// The longest silence: until the answer begins, and between two pieces of it.
    pub timeout: Duration,
    /// Most output tokens of one call; a request that asks for more gets this.
    pub max_output_tokens: u32,
    /// Tokens the default model can read and write.
    pub context_window_tokens: u64,
    /// Ask for the answer as a stream. A server that answers in the other form is understood all the same.
    pub stream: bool,
}

/// Why a provider cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ProviderSetupError {
    /// The base URL is refused.
    #[error("the base URL {0}")]
    BaseUrl(#[from] BaseUrlError),
    /// The key holds characters that no header can carry.
    #[error("the key holds characters that cannot be sent; was it pasted with a line break?")]
    Key,
    /// The process has not chosen its TLS implementation.
    #[error("no TLS provider is installed in this process")]
    NoTlsProvider,
    /// The HTTP client cannot be built: no root certificates on this machine, as a rule.
    #[error("cannot set up HTTPS; are root certificates (ca-certificates) installed?")]
    Client(#[source] reqwest::Error),
}

/// Calls models through Chat Completions.
#[derive(Clone, Debug)]
pub struct ChatCompletionsProvider {
    endpoint: Arc<Endpoint>,
}

/// What every call of one provider shares.
#[derive(Debug)]
struct Endpoint {
    config: ChatCompletionsConfig,
    /// The full URL of the method.
    url: Url,
    /// `scheme://host[:port]`, for people.
    origin: String,
    headers: HeaderMap,
    client: Client,
    failures: Failures,
}

impl ChatCompletionsProvider {
    /// Sets up a provider; nothing is sent yet. An https URL needs an installed `rustls` crypto provider.
    pub fn new(config: ChatCompletionsConfig) -> Result<Self, ProviderSetupError> {
        let base = parse_base_url(&config.base_url, config.api_key.is_some())?;
        let url = format!("{}/chat/completions", base.as_str().trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|_| BaseUrlError::Invalid)?;
        let endpoint = Endpoint {
            origin: url.origin().ascii_serialization(),
            headers: headers(config.api_key.as_ref())?,
            client: client(&url)?,
            failures: Failures::new(&config.name, config.api_key.as_ref()),
            url,
            config,
        };
        Ok(Self { endpoint: Arc::new(endpoint) })
    }
}

impl ModelProvider for ChatCompletionsProvider {
    fn info(&self) -> ModelInfo {
        let Endpoint { config, origin, .. } = &*self.endpoint;
        ModelInfo {
            provider: config.name.clone(),
            model: config.model.clone(),
            context_window_tokens: config.context_window_tokens,
            endpoint: origin.clone(),
            api: "chat_completions",
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let call = Call::new(Arc::clone(&self.endpoint), request);
        stream::unfold(call, async |mut call| call.next().await.map(|event| (event, call))).boxed()
    }
}

fn headers(key: Option<&Secret>) -> Result<HeaderMap, ProviderSetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        let bearer = HeaderValue::try_from(format!("Bearer {}", key.reveal()));
        let mut bearer = bearer.map_err(|_| ProviderSetupError::Key)?;
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
    }
    Ok(headers)
}

/// A client that goes where it is told and nowhere else: a redirect would carry the conversation and the key along.
fn client(url: &Url) -> Result<Client, ProviderSetupError> {
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .connect_timeout(CONNECT_MAX)
        .user_agent(concat!("tiny-harness/", env!("CARGO_PKG_VERSION")));
    let builder = if url.scheme() == "https" { https(builder)? } else { without_tls(builder) };
    builder.build().map_err(ProviderSetupError::Client)
}

fn https(builder: ClientBuilder) -> Result<ClientBuilder, ProviderSetupError> {
    // Building the client panics without one.
    rustls::crypto::CryptoProvider::get_default().ok_or(ProviderSetupError::NoTlsProvider)?;
    Ok(builder.https_only(true))
}

/// Plain http needs no certificates, so a machine without any can still use a local model. The client wants a TLS
/// set-up in any case; this one trusts nobody.
#[expect(clippy::expect_used, reason = "ring supports the default protocol versions")]
fn without_tls(builder: ClientBuilder) -> ClientBuilder {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    builder.tls_backend_preconfigured(tls)
}
