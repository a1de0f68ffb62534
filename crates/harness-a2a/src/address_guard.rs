//! The address guard: which URLs the harness may call because somebody else said so.
//!
//! A URL is checked as a text when it arrives, and every address is checked again when a connection is made: the
//! connector gets only addresses that passed, so a name that changes its mind in between leads nowhere. Clients built
//! here follow no redirect and use no proxy.

mod network;
mod resolver;

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use reqwest::Url;

use network::Network;
use resolver::{GuardedResolver, system_lookup};

/// Bytes of a URL.
const URL_BYTES_MAX: usize = 2_048;

/// Decides which addresses may be called: public ones, and what the configuration allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressGuard {
    hosts: BTreeSet<String>,
    networks: Vec<Network>,
}

/// An entry of the allow-list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is neither a host name nor an address nor a network such as 10.0.0.0/8")]
pub struct InvalidAllowedAddress {
    /// The entry.
    pub entry: String,
}

/// Why a URL is not called. `Display` is for whoever named the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenUrl {
    /// Not a URL, or an absurdly long one.
    #[error("it is not a URL of at most {URL_BYTES_MAX} bytes")]
    Invalid,
    /// Neither `http` nor `https`.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// User name or password in the URL.
    #[error("it has a user name or a password in it")]
    Credentials,
    /// An address that is not public and not allowed.
    #[error("it does not lead to a public address")]
    Address,
}

impl AddressGuard {
    /// A guard that allows, besides public addresses, these hosts, addresses and networks (`10.0.0.0/8`).
    /// An allowed host may have any address.
    pub fn allowing<T: AsRef<str>>(entries: &[T]) -> Result<Self, InvalidAllowedAddress> {
        let mut guard = Self::default();
        for entry in entries {
            let entry = entry.as_ref();
            match (Network::parse(entry), host_name(entry)) {
                (Some(network), _) => guard.networks.push(network),
                (None, Some(host)) => drop(guard.hosts.insert(host)),
                (None, None) => return Err(InvalidAllowedAddress { entry: entry.to_owned() }),
            }
        }
        Ok(guard)
    }

    /// Reads a URL that may be called, as far as its text says. Names are looked up when a connection is made.
    pub fn check(&self, text: &str) -> Result<Url, ForbiddenUrl> {
        if text.len() > URL_BYTES_MAX {
            return Err(ForbiddenUrl::Invalid);
        }
        // Every notation of an IPv4 address becomes the usual one here, as it does for the connector.
        let url = Url::parse(text).map_err(|_| ForbiddenUrl::Invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ForbiddenUrl::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ForbiddenUrl::Credentials);
        }
        let host = url.host_str().ok_or(ForbiddenUrl::Invalid)?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let admitted = match literal {
            Ok(address) => self.admits_address(address),
            Err(_) => self.admits_host(host) || !names_this_machine(host),
        };
        if admitted { Ok(url) } else { Err(ForbiddenUrl::Address) }
    }

    /// Whether a connection to this address of this host may be made.
    pub(crate) fn admits(&self, host: &str, address: IpAddr) -> bool {
        self.admits_host(host) || self.admits_address(address)
    }

    /// A builder of clients that connect only where this guard allows.
    pub(crate) fn client(&self, connect: Duration) -> reqwest::ClientBuilder {
        let resolver = GuardedResolver::new(self.clone(), system_lookup());
        client_builder(connect).dns_resolver(Arc::new(resolver))
    }

    fn admits_host(&self, host: &str) -> bool {
        host_name(host).is_some_and(|host| self.hosts.contains(&host))
    }

    fn admits_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.networks.iter().any(|network| network.contains(address))
    }
}

/// A builder of clients without redirects and proxies.
pub(crate) fn client_builder(connect: Duration) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("tiny-harness/", env!("CARGO_PKG_VERSION")))
}

/// A host name in its usual form: lower case, without the final dot.
fn host_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let usual = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    (!name.is_empty() && name.len() <= 253 && name.bytes().all(usual)).then_some(name)
}

/// Names that mean the machine itself, whatever a resolver says. Source: RFC 6761 section 6.3.
fn names_this_machine(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Whether an address is one of the public Internet. Source: the IANA registries of special-purpose addresses.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match a {
        0 | 10 | 127 => true,
        // Shared by carriers; some clouds keep their metadata here.
        100 => (64..128).contains(&b),
        // Link-local, the metadata services of most clouds among them.
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99),
        198 => b == 18 || b == 19 || (b == 51 && c == 100),
        203 => b == 0 && c == 113,
        // Multicast, reserved, broadcast.
        224.. => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // IPv4 addresses in disguise: mapped, translated (NAT64), 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo and other protocol assignments; documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // Of all others only global unicast addresses are given out.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests;
