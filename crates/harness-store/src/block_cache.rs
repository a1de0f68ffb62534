//! Blocks in memory, bounded by their bytes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use harness_model::limits;

use crate::encode::Address;

/// Bytes an entry costs besides its block.
const ENTRY_BYTES: usize = 128;

/// Two generations: what was used since the young one began survives when the old one is dropped. That is close to
/// least recently used, and each access costs one look-up.
#[derive(Debug)]
pub(crate) struct BlockCache {
    generations: Mutex<Generations>,
    generation_bytes: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Address, Bytes>,
    young_bytes: usize,
    old: HashMap<Address, Bytes>,
}

impl BlockCache {
    /// A cache that holds at most this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { generations: Mutex::default(), generation_bytes: bytes / 2 }
    }

    pub(crate) fn get(&self, address: &Address) -> Option<Bytes> {
        let mut generations = self.lock();
        if let Some(bytes) = generations.young.get(address) {
            return Some(bytes.clone());
        }
        let bytes = generations.old.remove(address)?;
        self.insert(&mut generations, *address, bytes.clone());
        Some(bytes)
    }

    /// Keeps a block if it is small enough. The bytes are copied when they may be part of something larger.
    pub(crate) fn put(&self, address: Address, bytes: &[u8]) {
        let fits = bytes.len() + ENTRY_BYTES <= self.generation_bytes;
        if fits && bytes.len() <= limits::CACHED_BLOCK_BYTES_MAX {
            let bytes = Bytes::copy_from_slice(bytes);
            self.insert(&mut self.lock(), address, bytes);
        }
    }

    pub(crate) fn remove(&self, address: &Address) {
        let mut generations = self.lock();
        generations.old.remove(address);
        if let Some(bytes) = generations.young.remove(address) {
            generations.young_bytes -= bytes.len() + ENTRY_BYTES;
        }
    }

    /// Forgets everything.
    #[cfg(feature = "postgres")]
    pub(crate) fn clear(&self) {
        *self.lock() = Generations::default();
    }

    fn insert(&self, generations: &mut Generations, address: Address, bytes: Bytes) {
        let cost = bytes.len() + ENTRY_BYTES;
        if generations.young_bytes + cost > self.generation_bytes {
            generations.old = std::mem::take(&mut generations.young);
            generations.young_bytes = 0;
        }
        if generations.young.insert(address, bytes).is_none() {
            generations.young_bytes += cost;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // Every change leaves the maps usable, so that a panic elsewhere is no reason to stop.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> Address {
        [n; 32]
    }

    fn bytes_held(cache: &BlockCache) -> usize {
        let generations = cache.lock();
        generations.young.values().chain(generations.old.values()).map(|b| b.len() + ENTRY_BYTES).sum()
    }

    #[test]
    fn stays_within_its_bytes_and_keeps_what_is_used() {
        let cache = BlockCache::new(20_000);
        for n in 0..=255 {
            cache.put(address(n), &[n; 872]);
            assert!(cache.get(&address(0)).is_some(), "what is used stays");
            assert!(bytes_held(&cache) <= 20_000);
        }
        assert_eq!(cache.get(&address(255)), Some(Bytes::from(vec![255; 872])));
        assert_eq!(cache.get(&address(1)), None);
        let before = bytes_held(&cache);
        for _ in 0..2 {
            cache.remove(&address(255));
        }
        assert_eq!((cache.get(&address(255)), bytes_held(&cache)), (None, before - 872 - ENTRY_BYTES));
    }

    #[test]
    fn refuses_what_is_too_large() {
        let cache = BlockCache::new(usize::MAX);
        cache.put(address(1), &vec![0; limits::CACHED_BLOCK_BYTES_MAX + 1]);
        assert_eq!(cache.get(&address(1)), None);
        let none = BlockCache::new(0);
        none.put(address(1), b"x");
        assert_eq!(none.get(&address(1)), None);
    }
}
