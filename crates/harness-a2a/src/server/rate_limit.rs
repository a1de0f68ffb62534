//! Token buckets, one for each peer address, in bounded memory.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use harness_model::Timestamp;

/// Buckets at once. When all of them are in use, further peers share one.
const BUCKETS_MAX: usize = 10_000;
/// The bucket of peers that have none of their own.
const SHARED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Least time between two searches for buckets that are full again, each of which looks at all of them.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// Unit of the tokens: as many as one request costs. Refill in whole units would lose fractions.
const COST: u64 = 60_000;

/// Limits requests per minute and peer. A bucket holds a minute's worth and refills evenly.
#[derive(Debug)]
pub(super) struct RateLimit {
    per_minute: u64,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    by_peer: HashMap<IpAddr, Bucket>,
    swept_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u64,
    at: Timestamp,
}

impl RateLimit {
    pub(super) fn new(per_minute: u32) -> Self {
        Self { per_minute: u64::from(per_minute), buckets: Mutex::default() }
    }

    /// Takes one request of `peer` into account; whether it may go on.
    pub(super) fn admits(&self, peer: IpAddr, now: Timestamp) -> bool {
        if self.per_minute == 0 {
            return true;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut peer = network_of(peer);
        if buckets.by_peer.len() >= BUCKETS_MAX && !buckets.by_peer.contains_key(&peer) {
            if buckets.swept_at.is_none_or(|at| now.since(at) >= SWEEP_PAUSE) {
                buckets.swept_at = Some(now);
                buckets.by_peer.retain(|_, bucket| self.refilled(*bucket, now).tokens < self.full());
            }
            if buckets.by_peer.len() >= BUCKETS_MAX {
                peer = SHARED;
            }
        }
        let bucket = buckets.by_peer.entry(peer).or_insert(Bucket { tokens: self.full(), at: now });
        *bucket = self.refilled(*bucket, now);
        let admitted = bucket.tokens >= COST;
        if admitted {
            bucket.tokens -= COST;
        }
        admitted
    }

    fn full(&self) -> u64 {
        self.per_minute * COST
    }

    fn refilled(&self, bucket: Bucket, now: Timestamp) -> Bucket {
        let elapsed_ms = u64::try_from(now.since(bucket.at).as_millis()).unwrap_or(u64::MAX);
        // `per_minute` tokens each millisecond are `per_minute` requests each minute.
        let gained = elapsed_ms.saturating_mul(self.per_minute);
        Bucket { tokens: bucket.tokens.saturating_add(gained).min(self.full()), at: now.max(bucket.at) }
    }
}

/// Peers that share a bucket: one IPv4 address, or one IPv6 network of 64 bits, which is what one customer gets.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_bucket_holds_a_minute_and_refills_evenly() {
        let limit = RateLimit::new(2);
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert!(limit.admits(peer, at(0)) && limit.admits(peer, at(0)));
        assert!(!limit.admits(peer, at(29_999)));
        assert!(limit.admits(peer, at(30_000)));
        assert!(!limit.admits(peer, at(30_001)));
        assert!(limit.admits(IpAddr::from([10, 0, 0, 2]), at(30_001)));
    }

    #[test]
    fn addresses_of_one_network_share_a_bucket() {
        let limit = RateLimit::new(1);
        assert!(limit.admits("2001:db8::1".parse().unwrap(), at(0)));
        assert!(!limit.admits("2001:db8::2".parse().unwrap(), at(0)));
        assert!(limit.admits("::ffff:10.0.0.1".parse().unwrap(), at(0)));
        assert!(!limit.admits("10.0.0.1".parse().unwrap(), at(0)));
    }

    #[test]
    fn memory_is_bounded_and_idle_buckets_make_room() {
        let limit = RateLimit::new(1);
        let peer = |n: u32| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n));
        for n in 0..20_000 {
            limit.admits(peer(n), at(0));
        }
        assert!(limit.buckets.lock().unwrap().by_peer.len() <= BUCKETS_MAX + 1);
        assert!(!limit.admits(peer(30_000), at(0)), "the shared bucket is empty");
        assert!(limit.admits(peer(30_000), at(60_000)), "idle buckets made room");
    }

    #[test]
    fn zero_turns_it_off_and_a_clock_that_jumps_back_does_no_harm() {
        assert!(RateLimit::new(0).admits(SHARED, at(0)));
        let limit = RateLimit::new(1);
        assert!(limit.admits(SHARED, at(60_000)));
        assert!(!limit.admits(SHARED, at(0)));
        assert!(!limit.admits(SHARED, at(60_001)));
    }
}
