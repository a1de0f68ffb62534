//! The ledger: one line per call, durable before the call is answered; for a call with a key, the line is the effect.

use std::{
    fs::OpenOptions,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use harness_ports::Clock;
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};

const FILE: &str = "orders-ledger.jsonl";

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) tool: String,
    pub(super) arguments: JsonObject,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub(super) ts: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

/// What recording did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// A line was added.
    Added,
    /// The same call with the same key is there already; nothing was added.
    Repeated,
    /// The key is there with another call; nothing was added.
    KeyTaken,
}

/// A file that several processes append to, one at a time.
#[derive(Clone)]
pub(super) struct Ledger {
    path: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Ledger {
    pub(super) fn new(data_dir: &Path, clock: Arc<dyn Clock>) -> Self {
        Self { path: data_dir.join(FILE), clock }
    }

    /// Records a call; with `once`, at most once per key.
    pub(super) async fn record(
        &self,
        tool: &str,
        arguments: &JsonObject,
        key: Option<String>,
        once: Once,
    ) -> io::Result<Recorded> {
        let entry = Entry {
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            ts: self.clock.now().to_rfc3339(),
            key,
        };
        let path = self.path.clone();
        // The lock waits for other processes, and the write for the disk.
        tokio::task::spawn_blocking(move || append(&path, &entry, once)).await.map_err(io::Error::other)?
    }
}

/// Whether a key is looked up before a call is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Once {
    PerCall,
    PerKey,
}

fn append(path: &Path, entry: &Entry, once: Once) -> io::Result<Recorded> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    // Held until the file is closed.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if once == Once::PerKey
        && let Some(known) = find(&text, entry)
    {
        let same = known.tool == entry.tool && known.arguments == entry.arguments;
        return Ok(if same { Recorded::Repeated } else { Recorded::KeyTaken });
    }
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    if !text.is_empty() && !text.ends_with('\n') {
        // A process died while it wrote its last line: that line stays unreadable and never took effect.
        line.insert(0, b'\n');
    }
    file.write_all(&line)?;
    file.sync_all()?;
    Ok(Recorded::Added)
}

fn find(text: &str, entry: &Entry) -> Option<Entry> {
    let key = entry.key.as_ref()?;
    text.lines()
        .filter_map(|line| serde_json::from_str::<Entry>(line).ok())
        .find(|known| known.key.as_ref() == Some(key))
}
