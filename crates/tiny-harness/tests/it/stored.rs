//! What a store holds, read from a copy: the file of a live or a killed process is left as it is.

use std::{collections::BTreeSet, fs, path::Path};

use harness_ports::{EventKind, HistoryEvent};
use rusqlite::Connection;
use serde_json::Value;

/// Opens a copy of the store with everything that was committed.
pub(crate) fn copy(store: &Path) -> (tempfile::TempDir, Connection) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy.sqlite3");
    fs::copy(store, &file).unwrap();
    let wal = format!("{}-wal", store.display());
    if Path::new(&wal).exists() {
        fs::copy(wal, folder.path().join("copy.sqlite3-wal")).unwrap();
    }
    let connection = Connection::open(file).unwrap();
    (folder, connection)
}

/// Every recorded event of every workflow, in order.
pub(crate) fn journal(store: &Path) -> Vec<HistoryEvent> {
    texts(store, "SELECT event FROM journal ORDER BY workflow, seq")
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

/// Ids of the activities whose end is recorded.
pub(crate) fn recorded_ends(store: &Path) -> BTreeSet<String> {
    let ended = |event: HistoryEvent| match event.kind {
        EventKind::ActivityCompleted { activity_id, .. } | EventKind::ActivityFailed { activity_id, .. } => {
            Some(activity_id.to_string())
        }
        EventKind::Started { .. } | EventKind::Signaled(_) | EventKind::TimerFired { .. } => None,
    };
    journal(store).into_iter().filter_map(ended).collect()
}

/// Kinds of the recorded events, in order.
pub(crate) fn kinds(store: &Path) -> Vec<String> {
    let kind = |event: HistoryEvent| {
        let event: Value = serde_json::to_value(event).unwrap();
        event["event"].as_str().unwrap().to_owned()
    };
    journal(store).into_iter().map(kind).collect()
}

/// The values of one text column. A store without tables has none.
pub(crate) fn texts(store: &Path, query: &str) -> Vec<String> {
    if !store.exists() {
        return Vec::new();
    }
    let (_folder, connection) = copy(store);
    let tables: u32 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'journal'", (), |row| row.get(0))
        .unwrap();
    if tables == 0 {
        return Vec::new();
    }
    let mut statement = connection.prepare(query).unwrap();
    let rows = statement.query_map((), |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}
