//! Blocks.

use bytes::Bytes;
use harness_model::{BlockId, limits};

use super::{
    StoreHome,
    fixtures::{commit, put_block},
};
use crate::Block;

/// Blocks come back as they were, small, empty or large, from memory and after a restart; keeping one twice is fine.
pub async fn blocks_are_kept_at_every_size(home: &dyn StoreHome) {
    let store = home.open().await;
    let limit = limits::CACHED_BLOCK_BYTES_MAX;
    let sizes = [0, 1, 5_000, limit - 1, limit, limit + 1, 3_000_000];
    let blocks: Vec<Block> = sizes.iter().map(|size| Block::new(vec![b'x'; *size])).collect();
    for block in &blocks {
        assert_eq!(store.block(&block.reference.id).await.unwrap(), None);
        commit(&*store, vec![put_block("t", block), put_block("t", block)]).await;
        commit(&*store, vec![put_block("t", block)]).await;
        assert_eq!(store.block(&block.reference.id).await.unwrap(), Some(block.bytes.clone()));
    }
    drop(store);
    home.close().await;
    let store = home.open().await;
    for block in &blocks {
        for _ in 0..2 {
            assert_eq!(store.block(&block.reference.id).await.unwrap(), Some(block.bytes.clone()));
        }
    }
    assert_eq!(store.block(&BlockId::of(b"never stored")).await.unwrap(), None);
    // A part of something larger is a block like any other.
    let whole = Bytes::from(vec![b'y'; 1_000]);
    let part = Block::new(whole.slice(10..20));
    commit(&*store, vec![put_block("t", &part)]).await;
    assert_eq!(store.block(&part.reference.id).await.unwrap(), Some(part.bytes));
}
