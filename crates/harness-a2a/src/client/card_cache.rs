//! Cards that were seen, with their entity tags: an unchanged card is not sent again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

/// Cards that are remembered; the one that was fetched longest ago is forgotten first.
const CARDS_MAX: usize = 64;
/// Bytes of an entity tag that is remembered.
const ETAG_BYTES_MAX: usize = 256;

/// Remembers cards. Clones share what is remembered.
#[derive(Clone, Debug, Default)]
pub struct CardCache {
    cards: Arc<Mutex<VecDeque<Remembered>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Remembered {
    pub(super) url: String,
    pub(super) etag: String,
    pub(super) body: Bytes,
}

impl CardCache {
    /// A cache that remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn get(&self, url: &str) -> Option<Remembered> {
        let cards = self.cards.lock().unwrap_or_else(PoisonError::into_inner);
        cards.iter().find(|card| card.url == url).cloned()
    }

    pub(super) fn put(&self, card: Remembered) {
        if card.etag.len() > ETAG_BYTES_MAX {
            return;
        }
        let mut cards = self.cards.lock().unwrap_or_else(PoisonError::into_inner);
        cards.retain(|known| known.url != card.url);
        cards.push_back(card);
        if cards.len() > CARDS_MAX {
            cards.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        let cache = CardCache::new();
        let card = |n: usize, etag: &str| Remembered {
            url: format!("u{n}"),
            etag: etag.to_owned(),
            body: Bytes::from_static(b"{}"),
        };
        for n in 0..CARDS_MAX {
            cache.put(card(n, "a"));
        }
        cache.put(card(0, "b"));
        cache.put(card(CARDS_MAX, "a"));
        cache.put(card(99, &"x".repeat(300)));
        assert_eq!(cache.get("u0").unwrap().etag, "b");
        assert!(cache.get("u1").is_none() && cache.get("u2").is_some() && cache.get("u99").is_none());
    }
}
