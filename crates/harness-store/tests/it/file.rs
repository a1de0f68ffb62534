//! The file: its mode, its lock, its version, and what is left of it when a process dies.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use harness_model::{TaskId, Timestamp, codes};
use harness_ports::{Block, DeleteWhen, Store, StoreError, Write, WriteBatch};
use harness_store::{SqliteStore, StoreOptions};

use crate::home::{Home, entry};

fn open(path: &Path) -> Result<std::sync::Arc<SqliteStore>, StoreError> {
    SqliteStore::open(StoreOptions::new(path))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn every_file_belongs_to_its_owner_only() {
    let home = Home::new();
    let directory = home.path().parent().unwrap().to_owned();
    fs::write(home.path(), "").unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let store = home.open_store();
    store.commit(entry("t", "k")).await.unwrap();
    let mut names = Vec::new();
    for file in fs::read_dir(directory).unwrap() {
        let file = file.unwrap();
        assert_eq!(mode(&file.path()), 0o600, "{:?}", file.path());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["store.db", "store.db-shm", "store.db-wal", "store.db.lock"]);
}

#[tokio::test]
async fn a_second_opener_is_told_who_is_in_the_way() {
    let home = Home::new();
    let store = home.open_store();
    let error = open(&home.path()).unwrap_err();
    assert!(matches!(&error, StoreError::Locked { path } if path.ends_with("store.db")), "{error:?}");
    assert_eq!(error.code(), codes::STORE_LOCKED);
    store.commit(entry("t", "k")).await.expect("the first is not disturbed");
    store.close().await;
    open(&home.path()).expect("a closed store can be opened").commit(entry("t", "l")).await.unwrap();
}

#[tokio::test]
async fn dropping_a_store_closes_it() {
    let home = Home::new();
    drop(home.open_store());
    // A commit that was never polled holds nothing open.
    let store = home.open_store();
    let never_polled = store.commit(entry("t", "k"));
    drop(store);
    let store = home.open_store();
    let error = never_polled.await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(store.log(&"t".into(), None, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_a_remedy() {
    let home = Home::new();
    home.open_store().close().await;
    let connection = rusqlite::Connection::open(home.path()).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    let error = open(&home.path()).unwrap_err();
    assert_eq!(error.code(), codes::STORE_UNREADABLE);
    let text = error.to_string();
    assert!(text.contains("version 999") && text.contains("choose another path"), "{text}");
}

/// Nobody knows who uses the blocks of a schema without owners, so they stay, also when a task that keeps one again goes.
#[tokio::test]
async fn blocks_from_before_owners_were_known_stay() {
    let home = Home::new();
    let (old, new) = (Block::new("old"), Block::new("new"));
    let connection = rusqlite::Connection::open(home.path()).unwrap();
    connection.execute_batch(include_str!("../../migrations/0001_initial.sql")).unwrap();
    connection.pragma_update(None, "application_id", 0x7469_6e79).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let address: Vec<u8> = (0..64)
        .step_by(2)
        .map(|at| u8::from_str_radix(&old.reference.id.as_str()[at..at + 2], 16).unwrap())
        .collect();
    let insert = "INSERT INTO blocks (address, bytes) VALUES (?1, ?2)";
    connection.execute(insert, (address, &old.bytes[..])).unwrap();
    drop(connection);
    let store = home.open_store();
    let task_id = TaskId::from("t");
    let put = |block: &Block| Write::PutBlock { block: block.clone(), task_id: task_id.clone() };
    let delete = Write::DeleteTask { task_id: task_id.clone(), when: DeleteWhen::Always };
    for writes in [vec![put(&old), put(&new)], vec![delete]] {
        store.commit(WriteBatch::new(Timestamp::from_millis(0), writes)).await.unwrap();
    }
    assert_eq!(store.block(&old.reference.id).await.unwrap(), Some(old.bytes));
    assert_eq!(store.block(&new.reference.id).await.unwrap(), None);
}

#[tokio::test]
async fn other_files_are_left_alone() {
    let home = Home::new();
    let connection = rusqlite::Connection::open(home.path()).unwrap();
    connection.execute_batch("CREATE TABLE theirs (a)").unwrap();
    drop(connection);
    let error = open(&home.path()).unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    let text = home.path().with_file_name("text");
    fs::write(&text, "these are notes, not a database: ".repeat(100)).unwrap();
    let error = open(&text).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(fs::read_to_string(&text).unwrap().starts_with("these are notes"));
    let error = open(&home.path().join("not/there")).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

/// What a process leaves when it dies: the files as they are while it runs, without any goodbye.
#[tokio::test(flavor = "multi_thread")]
async fn everything_acknowledged_is_in_what_a_dead_process_leaves() {
    let home = Home::new();
    let store = home.open_store();
    let grave = tempfile::tempdir().unwrap();
    for n in 0..40_usize {
        store.commit(entry("t", &n.to_string())).await.unwrap();
        let copy = grave.path().join(format!("{n}.db"));
        fs::copy(home.path(), &copy).unwrap();
        fs::copy(home.path().with_extension("db-wal"), copy.with_extension("db-wal")).unwrap();
        let found = open(&copy).unwrap();
        assert_eq!(found.log(&"t".into(), None, 99).await.unwrap().len(), n + 1);
        assert_eq!(found.install_id(), store.install_id());
    }
}

/// The tail of the log file may be torn by a loss of power: what was acknowledged before it stays whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_torn_write_takes_only_what_was_not_acknowledged() {
    let home = Home::new();
    let store = home.open_store();
    store.commit(entry("t", "first")).await.unwrap();
    let wal = home.path().with_extension("db-wal");
    let acknowledged = fs::metadata(&wal).unwrap().len();
    store.commit(entry("t", "second")).await.unwrap();
    let bytes = fs::read(&wal).unwrap();
    assert!(bytes.len() as u64 > acknowledged);
    let grave = tempfile::tempdir().unwrap();
    for (n, length) in (usize::try_from(acknowledged).unwrap()..bytes.len()).step_by(997).enumerate() {
        let copy = grave.path().join(format!("{n}.db"));
        fs::copy(home.path(), &copy).unwrap();
        fs::write(copy.with_extension("db-wal"), &bytes[..length]).unwrap();
        let found = open(&copy).unwrap();
        assert_eq!(found.log(&"t".into(), None, 99).await.unwrap().len(), 1, "torn at {length}");
        assert_eq!(found.commit(entry("t", "second")).await.unwrap().entries[0].1.seq, 1);
    }
}
