//! The operations of the protocol over the engine and the store.

mod feed;
mod inbound;
mod new_task;
mod operators;
mod page_token;
mod push_configs;
mod read;
mod send;

use std::sync::Arc;

use futures::stream::BoxStream;
use harness_model::{ParticipantId, Redactor, TraceParent};
use harness_ports::{Clock, Engine, IdSource, Store, TaskGroup};
use tokio_util::sync::CancellationToken;

use crate::{
    A2aConfig, A2aError, Extension, JwksError, PushError,
    access::Authority,
    authentication::Authentication,
    card::{PushDeclared, ServedCard},
    push::{Push, PushSettings},
    render::Renderer,
    server::EvenRefusals,
};

/// Events of a stream, each with its position in the task's log.
pub(crate) type Events = BoxStream<'static, Result<(u64, a2a::StreamResponse), A2aError>>;

/// What the transport knows about a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// The participant that the header asserts.
    pub(crate) participant: Option<ParticipantId>,
    /// What stands behind the assertion.
    pub(crate) authority: Authority,
    /// Extensions that the caller speaks, in the order of the card.
    pub(crate) activated: Vec<Extension>,
    /// Where in a trace the caller is.
    pub(crate) trace: Option<TraceParent>,
    /// Where a stream resumes: entries after this one.
    pub(crate) after: Option<u64>,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
}

/// The A2A server's operations. Clones share everything.
#[derive(Clone)]
pub struct A2aService {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: A2aConfig,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) renderer: Renderer,
    pub(crate) card: ServedCard,
    pub(crate) refusals: EvenRefusals,
    pub(crate) authentication: Option<Arc<Authentication>>,
    /// The sender of push notifications; the card declares them when there is one.
    pub(crate) push: Option<Push>,
    /// Cancelled when the process is about to end.
    pub(crate) draining: CancellationToken,
}

impl A2aService {
    /// A service with this configuration over these ports. It sends no push notifications, and its card says so.
    pub fn new(
        config: A2aConfig,
        engine: Arc<dyn Engine>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        redactor: Arc<Redactor>,
    ) -> Self {
        let renderer = Renderer::new(Arc::clone(&store), config.agent_id.clone());
        let card = ServedCard::of(&config, PushDeclared::No, clock.now());
        let authentication = Authentication::new(&config.security, store.install_id()).map(Arc::new);
        let refusals = EvenRefusals::new();
        let inner = Inner {
            config,
            engine,
            store,
            clock,
            ids,
            redactor,
            renderer,
            card,
            refusals,
            authentication,
            push: None,
            draining: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same with push notifications, which the card then declares. The senders live in `group`; what an earlier
    /// process has left undelivered is taken up at once. Must be called inside a Tokio runtime, before the service is
    /// shared; the process must have installed a TLS provider.
    /// Errors: the configuration has no push key; the HTTP client cannot be built.
    pub fn with_push(self, group: TaskGroup) -> Result<Self, PushError> {
        let key = self.inner.config.push_key.clone().ok_or(PushError::NoKey)?;
        let config = self.inner.config.clone();
        let settings = PushSettings { key, guard: config.push_guard.clone(), retry: config.push_retry };
        let inner = Arc::new(Inner {
            card: self.inner.card.remade(&config, PushDeclared::Yes),
            push: Some(Push::new(settings, group)?),
            refusals: self.inner.refusals.clone(),
            authentication: self.inner.authentication.clone(),
            config,
            engine: Arc::clone(&self.inner.engine),
            store: Arc::clone(&self.inner.store),
            clock: Arc::clone(&self.inner.clock),
            ids: Arc::clone(&self.inner.ids),
            redactor: Arc::clone(&self.inner.redactor),
            renderer: self.inner.renderer.clone(),
            draining: self.inner.draining.clone(),
        });
        if let Some(push) = &inner.push {
            push.resume(&inner);
        }
        Ok(Self { inner })
    }

    /// Loads the keys of the issuers whose tokens callers sign in with, for at most 10 seconds each, and from then on
    /// keeps them fresh in `group`. Keys that cannot be loaded now are loaded later; until then their tokens admit
    /// nobody. Without such issuers it does nothing. Must be called inside a Tokio runtime; the process must have
    /// installed a TLS provider. Errors: keys may not come from there; the HTTP client cannot be built.
    pub async fn follow_keys(&self, group: &TaskGroup) -> Result<(), JwksError> {
        match &self.inner.authentication {
            Some(authentication) => authentication.follow_keys(self.inner.clock.as_ref(), group).await,
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for A2aService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("A2aService").field("base_url", &self.inner.config.base_url).finish_non_exhaustive()
    }
}
