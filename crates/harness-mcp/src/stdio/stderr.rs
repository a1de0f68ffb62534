//! What a child writes on stderr: always drained, kept in two small files, the excess dropped.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use harness_model::{Redactor, clean_field};
use tokio::{
    fs::{self, File, OpenOptions},
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    time::Instant,
};

/// Bytes of a file after which a new one is begun. The one before is kept.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes that may come at once and are all kept.
const BURST_BYTES: u64 = 256 * 1024;
/// Bytes a second that are kept in the long run; the rest is dropped, so that a flood costs neither disk nor time.
const RATE_BYTES: u64 = 16 * 1024;
/// Bytes of a line; a longer one is broken.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// Characters of the last words.
const LAST_WORDS_CHARS_MAX: usize = 300;
const READ_BYTES: usize = 32 * 1024;

/// The last line of a child's stderr, for messages about its end.
#[derive(Clone, Debug)]
pub(super) struct LastWords {
    line: Arc<Mutex<Vec<u8>>>,
    redactor: Arc<Redactor>,
}

impl LastWords {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        Self { line: Arc::default(), redactor }
    }

    pub(super) fn get(&self) -> Option<String> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = self.redactor.text(&String::from_utf8_lossy(&line));
        let text = clean_field(&text, Some(LAST_WORDS_CHARS_MAX)).text;
        (!text.is_empty()).then_some(text)
    }

    fn note(&self, chunk: &[u8]) {
        let last = chunk.split(|b| *b == b'\n').rfind(|line| !line.trim_ascii().is_empty());
        if let Some(last) = last {
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            line.clear();
            line.extend_from_slice(&last[..last.len().min(LINE_BYTES_MAX)]);
        }
    }
}

/// Reads stderr to its end. A file that cannot be written is given up; reading goes on.
pub(super) async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    path: Option<PathBuf>,
    redactor: Arc<Redactor>,
    last_words: LastWords,
) {
    let mut file = match path {
        Some(path) => RotatingFile::open(path)
            .await
            .inspect_err(|error| tracing::warn!(%error, "a server's stderr cannot be kept; it is discarded"))
            .ok(),
        None => None,
    };
    let mut allowance = Allowance::full(Instant::now());
    let mut line = Vec::new();
    let mut chunk = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        last_words.note(&chunk[..read]);
        let Some(open) = &mut file else { continue };
        let kept = allowance.take(read, Instant::now());
        line.extend_from_slice(&chunk[..kept]);
        if kept < read {
            line.extend_from_slice(b" [output dropped]\n");
        }
        if write_lines(open, &mut line, &redactor).await.is_err() {
            file = None;
        }
    }
    line.push(b'\n');
    if let Some(open) = &mut file
        && write_lines(open, &mut line, &redactor).await.is_err()
    {
        tracing::debug!("the end of a server's stderr was not kept");
    }
}

/// Writes the whole lines of `pending`, masked, and leaves the rest in it.
async fn write_lines(file: &mut RotatingFile, pending: &mut Vec<u8>, redactor: &Redactor) -> io::Result<()> {
    let whole = match pending.iter().rposition(|b| *b == b'\n') {
        Some(end) => end + 1,
        None if pending.len() > LINE_BYTES_MAX => pending.len(),
        None => return Ok(()),
    };
    let text = redactor.text(&String::from_utf8_lossy(&pending[..whole]));
    pending.drain(..whole);
    file.append(text.as_bytes()).await
}

/// How much may still be kept.
#[derive(Debug)]
struct Allowance {
    bytes: u64,
    at: Instant,
}

impl Allowance {
    fn full(now: Instant) -> Self {
        Self { bytes: BURST_BYTES, at: now }
    }

    /// How many of `wanted` bytes may be kept now.
    fn take(&mut self, wanted: usize, now: Instant) -> usize {
        let earned =
            u64::try_from((now - self.at).as_millis()).unwrap_or(u64::MAX).saturating_mul(RATE_BYTES) / 1000;
        if earned > 0 {
            self.at = now;
            self.bytes = self.bytes.saturating_add(earned).min(BURST_BYTES);
        }
        let kept = wanted.min(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        self.bytes -= kept as u64;
        kept
    }
}

/// A file that begins anew when it is full; the full one gets the suffix `.1`.
struct RotatingFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl RotatingFile {
    async fn open(path: PathBuf) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).await?;
        }
        let file = append_to(&path).await?;
        let bytes = file.metadata().await?.len();
        Ok(Self { path, file, bytes })
    }

    async fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + text.len() as u64 > FILE_BYTES_MAX {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old).await?;
            self.file = append_to(&self.path).await?;
            self.bytes = 0;
        }
        self.file.write_all(text).await?;
        self.bytes += text.len() as u64;
        self.file.flush().await
    }
}

/// Readable by the owner only: servers print all sorts of things.
async fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use harness_model::{MASK, Secret};

    use super::*;

    #[test]
    fn a_flood_is_cut_to_the_burst_and_then_to_the_rate() {
        let start = Instant::now();
        let mut allowance = Allowance::full(start);
        let burst = usize::try_from(BURST_BYTES).unwrap();
        assert_eq!(allowance.take(burst + 1, start), burst);
        assert_eq!(allowance.take(100, start), 0);
        assert_eq!(
            allowance.take(burst, start + Duration::from_secs(1)),
            usize::try_from(RATE_BYTES).unwrap()
        );
        assert_eq!(allowance.take(burst, start + Duration::from_secs(3600)), burst);
    }

    #[tokio::test]
    async fn files_rotate_and_hold_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/server.log");
        let redactor = Arc::new(Redactor::new([Secret::new("hunter2hunter2")]));
        let last_words = LastWords::new(redactor.clone());
        let text = "the key is hunter2hunter2\nlast \u{1b}[31mwords\n\n";
        drain(text.as_bytes(), Some(path.clone()), redactor, last_words.clone()).await;
        let kept = fs::read_to_string(&path).await.unwrap();
        assert!(kept.starts_with(&format!("the key is {MASK}\nlast")), "{kept}");
        assert_eq!(last_words.get().unwrap(), "last [31mwords");

        let mut file = RotatingFile::open(path.clone()).await.unwrap();
        let block = vec![b'x'; 600 * 1024];
        for _ in 0..4 {
            file.append(&block).await.unwrap();
        }
        let sizes = [
            fs::metadata(&path).await.unwrap().len(),
            fs::metadata(dir.path().join("deep/server.log.1")).await.unwrap().len(),
        ];
        assert_eq!(sizes, [600 * 1024, 600 * 1024]);
    }
}
