//! Networks of an allow-list.

use std::net::IpAddr;

/// An address and how many of its first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// Reads `10.0.0.0/8`, `fd00::/8`, or an address alone, which is a network of one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix.map_or(Some(bits_max), |text| text.parse().ok())?;
        (prefix_bits <= bits_max).then_some(Self { address, prefix_bits })
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let differ = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        differ >= u32::from(self.prefix_bits)
    }
}
