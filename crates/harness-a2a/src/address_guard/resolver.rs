//! Name resolution for the connector: only addresses that the guard admits come out.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{AddressGuard, ForbiddenUrl};

/// Looks a name up.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The system's name resolution.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|host| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// A resolver whose answers the connector may use without looking at them.
pub(super) struct GuardedResolver {
    guard: Arc<AddressGuard>,
    lookup: Lookup,
}

impl GuardedResolver {
    pub(super) fn new(guard: AddressGuard, lookup: Lookup) -> Self {
        Self { guard: Arc::new(guard), lookup }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, host) = (Arc::clone(&self.guard), name.as_str().to_owned());
        let found = (self.lookup)(host.clone());
        Box::pin(async move {
            let addresses = found.await?;
            let admitted: Vec<SocketAddr> = addresses
                .into_iter()
                .filter(|address| guard.admits(&host, *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if admitted.is_empty() {
                return Err(ForbiddenUrl::Address.into());
            }
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}
