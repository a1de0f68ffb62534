//! Blocks and records.

use bytes::Bytes;
use harness_model::{BlockId, limits};
use serde_json::json;

use super::{StoreHome, fixtures::commit};
use crate::{Block, Record, RecordKind, Write};

/// Blocks come back as they were, small, empty or large, from memory and after a restart; keeping one twice is fine.
pub async fn blocks_are_kept_at_every_size(home: &dyn StoreHome) {
    let store = home.open().await;
    let limit = limits::CACHED_BLOCK_BYTES_MAX;
    let sizes = [0, 1, 5_000, limit - 1, limit, limit + 1, 3_000_000];
    let blocks: Vec<Block> = sizes.iter().map(|size| Block::new(vec![b'x'; *size])).collect();
    for block in &blocks {
        assert_eq!(store.block(&block.reference.id).await.unwrap(), None);
        commit(&*store, vec![Write::PutBlock(block.clone()), Write::PutBlock(block.clone())]).await;
        commit(&*store, vec![Write::PutBlock(block.clone())]).await;
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
    commit(&*store, vec![Write::PutBlock(part.clone())]).await;
    assert_eq!(store.block(&part.reference.id).await.unwrap(), Some(part.bytes));
}

/// Records of a kind and task, oldest first; a record of the same id takes the place of the one before.
pub async fn records_replace_and_stay_in_order(home: &dyn StoreHome) {
    let store = home.open().await;
    let record = |kind: RecordKind, id: &str, task: &str, n: i64| Record {
        kind,
        id: id.to_owned(),
        task_id: task.into(),
        value: json!({ "n": n }),
    };
    let put = |record: Record| Write::PutRecord(record);
    for kind in RecordKind::ALL {
        let writes = ["c", "a", "b"].iter().zip(1..).map(|(id, n)| put(record(kind, id, "t", n)));
        commit(&*store, writes.collect()).await;
        commit(&*store, vec![put(record(kind, "elsewhere", "u", 9)), put(record(kind, "c", "t", 4))]).await;
    }
    for kind in RecordKind::ALL {
        let expected = [record(kind, "c", "t", 4), record(kind, "a", "t", 2), record(kind, "b", "t", 3)];
        assert_eq!(store.records(kind, &"t".into(), 9).await.unwrap(), expected);
        assert_eq!(store.records(kind, &"t".into(), 2).await.unwrap(), expected[..2]);
        assert!(store.records(kind, &"nobody".into(), 9).await.unwrap().is_empty());
    }
}
