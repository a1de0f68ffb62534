//! What passes through a transport and matters here: how far a call got (the difference between "not sent" and "outcome
//! unknown"), that the tools changed, and that nothing more can come.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

const QUEUED: u8 = 0;
const HANDED: u8 = 1;
const WRITTEN: u8 = 2;

/// How far one call got. Travels with the request, beside what is serialized; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<AtomicU8>);

impl Progress {
    /// The transport took the call: some of it may have reached the server.
    pub(crate) fn is_handed(&self) -> bool {
        self.0.load(Ordering::Acquire) > QUEUED
    }

    /// The transport has the call and does not get rid of it.
    pub(crate) fn is_stuck(&self) -> bool {
        self.0.load(Ordering::Acquire) == HANDED
    }

    fn reach(&self, mark: u8) {
        self.0.fetch_max(mark, Ordering::AcqRel);
    }
}

/// What a [`Watched`] transport tells. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// Cancelled when nothing more can come in.
    pub(crate) over: CancellationToken,
    /// Set when the server says that its tools changed. It is set before anything that the server sent later is seen.
    pub(crate) tools_changed: Arc<AtomicBool>,
}

/// A transport that notes the [`Progress`] of calls and what its [`Watch`] is for.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    inner: T,
    watch: Watch,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, watch: Watch) -> Self {
        Self { inner, watch }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let progress = progress_of(&message);
        let sending = self.inner.send(message);
        async move {
            progress.reach(HANDED);
            let sent = sending.await;
            progress.reach(WRITTEN);
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await;
        match &message {
            Some(message) if says_tools_changed(message) => {
                self.watch.tools_changed.store(true, Ordering::Release);
            }
            Some(_) => {}
            None => self.watch.over.cancel(),
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.watch.over.cancel();
        self.inner.close().await
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.watch.over.cancel();
    }
}

fn says_tools_changed(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Notification(notification)
        if matches!(notification.notification, ServerNotification::ToolListChangedNotification(_)))
}

fn progress_of(message: &ClientJsonRpcMessage) -> Progress {
    if let ClientJsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(call) = &request.request
    {
        return call.extensions.get::<Progress>().cloned().unwrap_or_default();
    }
    Progress::default()
}
