//! Several processes over one schema: here several stores, which share nothing but the server.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, future::join_all};
use harness_model::{TaskId, Timestamp};
use harness_ports::{Block, DeleteWhen, LogStream, Record, RecordKind, Store, StoreError, Write, WriteBatch};
use harness_store::{PostgresOptions, PostgresStore, PostgresUse};
use serde_json::json;

use super::{ServerHome, options};
use crate::home::entry;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

async fn next(stream: &mut LogStream) -> u64 {
    soon(stream.next()).await.unwrap().unwrap().seq
}

async fn pair(home: &ServerHome) -> [Arc<PostgresStore>; 2] {
    [home.open_store().await, home.open_store().await]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_is_woken_by_what_another_process_commits() {
    let Some(home) = ServerHome::start().await else { return };
    let stores = pair(&home).await;
    let mut streams: Vec<LogStream> = stores.iter().map(|store| store.follow(&"t".into(), None)).collect();
    // All of it together: were it not for being told, it would take three times as long.
    soon(async {
        for n in 0..40_u64 {
            let writer = &stores[usize::try_from(n).unwrap() % 2];
            writer.commit(entry("t", &n.to_string())).await.unwrap();
            for stream in &mut streams {
                assert_eq!(next(stream).await, n);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_of_them_write_is_one_log() {
    const EACH: u64 = 150;
    let Some(home) = ServerHome::start().await else { return };
    let stores = pair(&home).await;
    let streams = stores.iter().flat_map(|store| (0..5).map(|_| store.follow(&"t".into(), None)));
    let streams: Vec<LogStream> = streams.collect();
    let followers = streams.into_iter().map(|stream| {
        stream.take(usize::try_from(2 * EACH).unwrap()).map(|entry| entry.unwrap().seq).collect::<Vec<_>>()
    });
    let commits = (0..2 * EACH).map(|n| {
        let store = &stores[usize::try_from(n).unwrap() % 2];
        store.commit(entry("t", &n.to_string()))
    });
    let (committed, followed) = soon(futures::future::join(join_all(commits), join_all(followers))).await;
    let mut numbers: Vec<u64> =
        committed.into_iter().map(|result| result.unwrap().entries[0].1.seq).collect();
    numbers.sort_unstable();
    let expected: Vec<u64> = (0..2 * EACH).collect();
    assert_eq!(numbers, expected);
    for seqs in followed {
        assert_eq!(seqs, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_at_once_make_one_schema() {
    let Some(home) = ServerHome::start().await else { return };
    let opened = join_all((0..6).map(|_| PostgresStore::open(home.options()))).await;
    let stores: Vec<Arc<PostgresStore>> = opened.into_iter().map(Result::unwrap).collect();
    assert!(stores.iter().all(|store| store.install_id() == stores[0].install_id()));
    assert_eq!(home.server.query("SELECT version FROM tiny_harness.tiny_harness_schema"), "1");
    let mut other = options(&home.server);
    other.schema = "another".to_owned();
    let other = PostgresStore::open(other).await.unwrap();
    assert_ne!(other.install_id(), stores[0].install_id(), "each schema is a store of its own");
    stores[0].commit(entry("t", "k")).await.unwrap();
    assert!(other.log(&"t".into(), None, 9).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_want_the_same_one_gets_it() {
    let Some(home) = ServerHome::start().await else { return };
    let stores = pair(&home).await;
    for n in 0..50_u64 {
        let create = || Write::CreateWorkflow {
            workflow_id: format!("w{n}").into(),
            workflow_type: "test.v1".to_owned(),
        };
        let batch = || WriteBatch::new(Timestamp::from_millis(0), vec![create()]);
        let results = join_all(stores.iter().map(|store| store.commit(batch()))).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        let conflicts = results.iter().filter(|result| matches!(result, Err(StoreError::Conflict { .. })));
        assert_eq!(conflicts.count(), 1, "{results:?}");
    }
}

/// An engine that takes all of the work for its own must be the only one.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_wants_to_be_alone_is() {
    let Some(home) = ServerHome::start().await else { return };
    let alone = || PostgresStore::open(PostgresOptions { usage: PostgresUse::Alone, ..home.options() });
    let first = alone().await.unwrap();
    let error = alone().await.unwrap_err();
    assert!(matches!(&error, StoreError::Locked { path } if path.contains("tiny_harness")), "{error:?}");
    home.open_store().await.close().await;
    let other = PostgresOptions { usage: PostgresUse::Alone, schema: "other".to_owned(), ..home.options() };
    PostgresStore::open(other).await.unwrap();
    first.commit(entry("t", "0")).await.unwrap();
    // The server takes it for gone, as when the network was away for too long, and another one takes over.
    let lock = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted
                AND objid = (SELECT hashtext('tiny_harness')::oid)";
    assert_eq!(home.server.query(lock), "1");
    let second = alone().await.unwrap();
    soon(async {
        let mut n = 1;
        while first.commit(entry("t", &n.to_string())).await.is_ok() {
            n += 1;
        }
    })
    .await;
    let error = first.commit(entry("t", "late")).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    second.commit(entry("t", "next")).await.unwrap();
    second.close().await;
    soon(async { while first.commit(entry("t", "again")).await.is_err() {} }).await;
}

/// Followers elsewhere end with their task, also when the next one of its id has a log that is as long by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_another_process_deletes_is_gone_everywhere() {
    let Some(home) = ServerHome::start().await else { return };
    let [here, elsewhere] = pair(&home).await;
    let block = Block::new("only of t");
    let task_id = TaskId::from("t");
    let put = Write::PutBlock { block: block.clone(), task_id: task_id.clone() };
    let delete = Write::DeleteTask { task_id: task_id.clone(), when: DeleteWhen::Always };
    let batch = |write: &Write| WriteBatch::new(Timestamp::from_millis(0), vec![write.clone()]);
    for _ in 0..3 {
        here.commit(batch(&put)).await.unwrap();
        here.commit(entry("t", "0")).await.unwrap();
        let mut stream = elsewhere.follow(&task_id, None);
        assert_eq!(next(&mut stream).await, 0);
        assert!(futures::poll!(stream.next()).is_pending());
        let not_polled = elsewhere.follow(&task_id, Some(0));
        assert_eq!(elsewhere.block(&block.reference.id).await.unwrap().as_ref(), Some(&block.bytes));
        here.commit(batch(&delete)).await.unwrap();
        for key in ["0", "1", "2"] {
            here.commit(entry("t", key)).await.unwrap();
        }
        assert!(soon(stream.next()).await.is_none(), "it ends, and has nothing of the next one");
        assert!(soon(not_polled.collect::<Vec<_>>()).await.is_empty());
        let mut of_next = elsewhere.follow(&task_id, None);
        assert_eq!([next(&mut of_next).await, next(&mut of_next).await, next(&mut of_next).await], [0, 1, 2]);
        // Its bytes may be in the memory of a process until it hears of the deletion.
        soon(async { while elsewhere.block(&block.reference.id).await.unwrap().is_some() {} }).await;
        here.commit(batch(&delete)).await.unwrap();
        assert!(soon(of_next.next()).await.is_none());
    }
}

/// One keeps blocks that another one deletes at the same moment: what is kept is there.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_are_kept_survive_deletions_elsewhere() {
    let Some(home) = ServerHome::start().await else { return };
    let [here, elsewhere] = pair(&home).await;
    let block = Block::new("shared");
    let put = |task: &str| Write::PutBlock { block: block.clone(), task_id: task.into() };
    let batch = |write: Write| WriteBatch::new(Timestamp::from_millis(0), vec![write]);
    for n in 0..60 {
        let task = format!("t{n}");
        here.commit(batch(put("short"))).await.unwrap();
        let delete = Write::DeleteTask { task_id: "short".into(), when: DeleteWhen::Always };
        let (kept, deleted) =
            futures::future::join(elsewhere.commit(batch(put(&task))), here.commit(batch(delete))).await;
        kept.unwrap();
        deleted.unwrap();
        let sql = format!(
            "SELECT count(*) FROM tiny_harness.block_owners o JOIN tiny_harness.blocks b ON b.id = o.block
             JOIN tiny_harness.tasks t ON t.id = o.owner WHERE t.task_id = '{task}'"
        );
        assert_eq!(home.server.query(&sql), "1", "round {n}");
        let delete = Write::DeleteTask { task_id: task.as_str().into(), when: DeleteWhen::Always };
        elsewhere.commit(batch(delete)).await.unwrap();
    }
    assert_eq!(home.server.query("SELECT count(*) FROM tiny_harness.blocks"), "0");
}

/// Batches about the same things in opposite orders.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_cross_all_happen() {
    let Some(home) = ServerHome::start().await else { return };
    let stores = pair(&home).await;
    let batch = |n: u64, reverse: bool| {
        let mut writes = Vec::new();
        for name in ["a", "b", "c"] {
            writes.extend(entry(name, &n.to_string()).writes);
            writes.push(Write::PutRecord(Record {
                kind: RecordKind::InboxAudit,
                id: name.to_owned(),
                task_id: name.into(),
                value: json!(n),
            }));
            writes.push(Write::PutBlock {
                block: Block::new(format!("block {}", n / 2)),
                task_id: name.into(),
            });
        }
        if reverse {
            writes.reverse();
        }
        WriteBatch::new(Timestamp::from_millis(0), writes)
    };
    let commits = (0..200_u64).map(|n| {
        let reverse = n % 2 == 1;
        stores[usize::from(reverse)].commit(batch(n, reverse))
    });
    for result in soon(join_all(commits)).await {
        result.unwrap();
    }
    for name in ["a", "b", "c"] {
        assert_eq!(stores[0].log(&name.into(), None, 999).await.unwrap().len(), 200);
    }
}
