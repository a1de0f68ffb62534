//! How far a call got: the difference between "not sent" and "outcome unknown".

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
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

/// A transport that notes the [`Progress`] of calls and cancels `over` when nothing more can come in.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    inner: T,
    over: CancellationToken,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, over: CancellationToken) -> Self {
        Self { inner, over }
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
        if message.is_none() {
            self.over.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.over.cancel();
        self.inner.close().await
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

fn progress_of(message: &ClientJsonRpcMessage) -> Progress {
    if let ClientJsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(call) = &request.request
    {
        return call.extensions.get::<Progress>().cloned().unwrap_or_default();
    }
    Progress::default()
}
