//! Records: replaced, read in order, deleted.

use serde_json::{Value, json};

use super::{
    StoreHome,
    fixtures::{at, commit, is_conflict, try_commit},
};
use crate::{Record, RecordKind, RowKind, Write, WriteBatch};

fn record(kind: RecordKind, id: &str, task: &str, n: i64) -> Record {
    Record { kind, id: id.to_owned(), task_id: task.into(), value: json!({ "n": n }) }
}

fn delete(kind: RecordKind, id: &str) -> Write {
    Write::DeleteRecord { kind, id: id.to_owned() }
}

/// Records of a kind and task, oldest first; a record of the same id takes the place of the one before.
pub async fn records_replace_and_stay_in_order(home: &dyn StoreHome) {
    let store = home.open().await;
    let put = Write::PutRecord;
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

/// Records of one kind and every task, by id, a page at a time.
pub async fn records_of_every_task_are_read_in_pages(home: &dyn StoreHome) {
    let store = home.open().await;
    let kind = RecordKind::PushConfig;
    let ids = ["t:b", "a:1", "t:B", "t:a", "z:ä", "z:z"];
    let writes = ids.iter().map(|id| Write::PutRecord(record(kind, id, &id[..1], 1)));
    commit(&*store, writes.collect()).await;
    commit(&*store, vec![Write::PutRecord(record(RecordKind::InboxAudit, "t:c", "t", 1))]).await;
    let mut pages: Vec<Vec<String>> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.records_page(kind, after.as_deref(), 4).await.unwrap();
        assert!(page.iter().all(|record| *record.task_id.as_str() == record.id[..1]));
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        pages.push(page.into_iter().map(|record| record.id).collect());
    }
    assert_eq!(pages, [vec!["a:1", "t:B", "t:a", "t:b"], vec!["z:z", "z:ä"]]);
    assert!(store.records_page(kind, None, 0).await.unwrap().is_empty());
}

/// A record is replaced only while it is what the writer has read, so that two writers never undo each other.
pub async fn a_record_is_replaced_only_as_it_was_read(home: &dyn StoreHome) {
    let store = home.open().await;
    let kind = RecordKind::PushConfig;
    let value = json!({"z": 1, "a": {"text": "ü\"\\", "list": [null, true, -7]}});
    let first = Record { value, ..record(kind, "t:c", "t", 0) };
    commit(&*store, vec![Write::PutRecord(first.clone())]).await;
    let read = store.records(kind, &"t".into(), 1).await.unwrap().remove(0);
    assert_eq!(read, first);
    let replace = |before: &Record, value: Value| Write::ReplaceRecord { before: before.clone(), value };
    commit(&*store, vec![replace(&read, json!({"n": 2}))]).await;
    let second = record(kind, "t:c", "t", 2);
    assert_eq!(store.records(kind, &"t".into(), 9).await.unwrap(), std::slice::from_ref(&second));
    let mut refused = vec![replace(&read, json!({"n": 3}))];
    for (id, task) in [("t:d", "t"), ("t:c", "u")] {
        refused.push(replace(&record(kind, id, task, 2), json!({"n": 3})));
    }
    refused.push(replace(&record(RecordKind::InboxAudit, "t:c", "t", 2), json!({"n": 3})));
    for write in refused {
        let result = try_commit(&*store, vec![write.clone()]).await;
        assert!(is_conflict(&result), "{write:?} gave {result:?}");
    }
    commit(&*store, vec![delete(kind, "t:c")]).await;
    let result = try_commit(&*store, vec![replace(&second, json!({"n": 3}))]).await;
    assert!(is_conflict(&result), "a deleted record does not come back: {result:?}");
    assert!(store.records(kind, &"t".into(), 9).await.unwrap().is_empty());
}

/// Old records of a kind go, the oldest first, whosever they are; one that was written again is young again.
pub async fn old_records_are_deleted_by_kind(home: &dyn StoreHome) {
    let store = home.open().await;
    let (kind, other) = (RecordKind::PushConfig, RecordKind::InboxAudit);
    let write = async |at_ms, write| store.commit(WriteBatch::new(at(at_ms), vec![write])).await.unwrap();
    for (n, id) in ["e", "d", "c", "b", "a"].into_iter().enumerate() {
        let at_ms = 10 * i64::try_from(n).unwrap();
        write(at_ms, Write::PutRecord(record(kind, id, id, 1))).await;
        write(at_ms, Write::PutRecord(record(other, id, id, 1))).await;
    }
    write(50, Write::PutRecord(record(kind, "e", "e", 2))).await;
    write(60, Write::ReplaceRecord { before: record(kind, "d", "d", 1), value: json!({"n": 3}) }).await;
    let left = async || {
        let page = store.records_page(kind, None, 9).await.unwrap();
        page.into_iter().map(|record| record.id).collect::<String>()
    };
    let sweep = |limit| Write::DeleteOldRecords { kind, before: at(40), limit };
    assert!(write(100, sweep(0)).await.deleted.is_empty());
    assert_eq!(write(100, sweep(1)).await.deleted, [(RowKind::Record(kind), 1)].into());
    assert_eq!(left().await, "abde", "the oldest one goes first");
    assert_eq!(write(100, sweep(9)).await.deleted, [(RowKind::Record(kind), 1)].into());
    assert_eq!(left().await, "ade", "what is as old as the limit stays");
    assert!(write(100, sweep(9)).await.deleted.is_empty());
    assert_eq!(store.records_page(other, None, 9).await.unwrap().len(), 5, "other kinds stay");
}

/// A deleted record is gone, also after a restart; deleting it again is fine.
pub async fn records_are_deleted(home: &dyn StoreHome) {
    let store = home.open().await;
    let kind = RecordKind::PushConfig;
    let writes = ["t:a", "t:b"].map(|id| Write::PutRecord(record(kind, id, "t", 1)));
    commit(&*store, writes.into()).await;
    commit(&*store, vec![Write::PutRecord(record(RecordKind::InboxAudit, "t:a", "t", 1))]).await;
    commit(&*store, vec![delete(kind, "t:a"), delete(kind, "t:a"), delete(kind, "never")]).await;
    drop(store);
    home.close().await;
    let store = home.open().await;
    assert_eq!(store.records(kind, &"t".into(), 9).await.unwrap(), [record(kind, "t:b", "t", 1)]);
    assert_eq!(store.records_page(kind, None, 9).await.unwrap().len(), 1);
    assert_eq!(store.records(RecordKind::InboxAudit, &"t".into(), 9).await.unwrap().len(), 1);
}
