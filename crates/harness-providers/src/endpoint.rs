//! One configured server, and the provider that calls it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream};
use harness_model::Secret;
use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::{Client, ClientBuilder, Response, Url, redirect};

use crate::{
    Api, BaseUrlError,
    base_url::parse_base_url,
    call::Call,
    http_failure::Failures,
    wire::{Wire, wire_of},
};

/// How long opening a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The version of Anthropic Messages that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// One endpoint, whatever its wire.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Name of the provider in the configuration; errors and answers carry it.
    pub name: String,
    /// Where the path of the wire is appended, such as `/chat/completions`. Rules: [`crate::check_base_url`].
    pub base_url: String,
    /// Sent as a bearer token, on Messages as `x-api-key`. `None`: no such header at all.
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

/// Calls the models of one endpoint over the wire it speaks.
#[derive(Clone, Debug)]
pub struct HttpProvider {
    endpoint: Arc<Endpoint>,
}

/// What every call of one provider shares.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) config: EndpointConfig,
    pub(crate) api: Api,
    pub(crate) wire: &'static dyn Wire,
    /// The full URL of the method.
    pub(crate) url: Url,
    /// `scheme://host[:port]`, for people.
    pub(crate) origin: String,
    pub(crate) failures: Failures,
    headers: HeaderMap,
    /// Keeps connections for the next call.
    client: Client,
    /// Opens a connection for each call.
    fresh: Client,
    /// Whether a connection may have been kept.
    has_answered: AtomicBool,
    /// Whether connections are kept.
    keeps: AtomicBool,
}

impl HttpProvider {
    /// Sets up a provider; nothing is sent yet. An https URL needs an installed `rustls` crypto provider.
    pub fn new(api: Api, config: EndpointConfig) -> Result<Self, ProviderSetupError> {
        let base = parse_base_url(&config.base_url, config.api_key.is_some())?;
        let url = format!("{}{}", base.as_str().trim_end_matches('/'), api.path());
        let url = Url::parse(&url).map_err(|_| BaseUrlError::Invalid)?;
        let endpoint = Endpoint {
            origin: url.origin().ascii_serialization(),
            headers: headers(api, config.api_key.as_ref())?,
            client: client(&url, Client::builder())?,
            fresh: client(&url, Client::builder().pool_max_idle_per_host(0))?,
            has_answered: AtomicBool::new(false),
            keeps: AtomicBool::new(true),
            failures: Failures::new(&config.name, config.api_key.as_ref()),
            wire: wire_of(api),
            api,
            url,
            config,
        };
        Ok(Self { endpoint: Arc::new(endpoint) })
    }
}

impl ModelProvider for HttpProvider {
    fn info(&self) -> ModelInfo {
        let Endpoint { config, origin, api, .. } = &*self.endpoint;
        ModelInfo {
            provider: config.name.clone(),
            model: config.model.clone(),
            context_window_tokens: config.context_window_tokens,
            endpoint: origin.clone(),
            api: api.name(),
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let call = Call::new(Arc::clone(&self.endpoint), request);
        stream::unfold(call, async |mut call| call.next().await.map(|event| (event, call))).boxed()
    }
}

impl Endpoint {
    /// Sends a request and waits for the head of its response.
    ///
    /// A request is sent a second time in one case only: a kept connection was closed without a byte of an answer, which
    /// is how servers that no longer listen on it look like. llama.cpp's does this after every stream, so over plain
    /// http, where connections cost little, none is kept any more once that has happened.
    pub(crate) async fn send(&self, body: Vec<u8>) -> Result<Response, reqwest::Error> {
        let keeps = self.keeps.load(Ordering::Relaxed);
        let may_be_stale = keeps && self.has_answered.load(Ordering::Relaxed);
        let client = if keeps { &self.client } else { &self.fresh };
        let request = client.post(self.url.clone()).headers(self.headers.clone()).body(body).build()?;
        let again = if may_be_stale { request.try_clone() } else { None };
        let mut sent = client.execute(request).await;
        if let (Err(error), Some(again)) = (&sent, again)
            && is_swallowed(error)
        {
            self.keeps.fetch_and(self.url.scheme() == "https", Ordering::Relaxed);
            sent = self.fresh.execute(again).await;
        }
        if sent.is_ok() {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        sent
    }
}

/// Whether a connection was there, and ended before any answer.
fn is_swallowed(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

fn headers(api: Api, key: Option<&Secret>) -> Result<HeaderMap, ProviderSetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let (name, prefix) = match api {
        Api::ChatCompletions | Api::Responses { .. } => (header::AUTHORIZATION, "Bearer "),
        Api::Messages => (HeaderName::from_static("x-api-key"), ""),
    };
    if let Some(key) = key {
        let value = HeaderValue::try_from(format!("{prefix}{}", key.reveal()));
        let mut value = value.map_err(|_| ProviderSetupError::Key)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if api == Api::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    Ok(headers)
}

/// A client that goes where it is told and nowhere else: a redirect would carry the conversation and the key along.
fn client(url: &Url, builder: ClientBuilder) -> Result<Client, ProviderSetupError> {
    let builder = builder
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
