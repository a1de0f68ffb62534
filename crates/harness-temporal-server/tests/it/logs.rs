//! What an operator reads.

use std::{
    io,
    sync::{Arc, Mutex},
};

use harness_temporal_server::DevServer;
use harness_testkit::temporal_binary;
use tracing::subscriber::DefaultGuard;

use crate::processes::{in_memory, on_file};

/// What this thread logs.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn capture() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time();
        let subscriber = subscriber.with_writer(move || writer.clone()).finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The only line that contains this.
    fn with(&self, wanted: &str) -> String {
        let text = self.text();
        let found: Vec<&str> = text.lines().filter(|line| line.contains(wanted)).collect();
        assert_eq!(found.len(), 1, "one line with {wanted:?} in {text}");
        found[0].trim().to_owned()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn start_and_end_are_told_and_that_it_is_not_for_production() {
    let Some(binary) = temporal_binary() else { return };
    let (lines, _guard) = Lines::capture();
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let server = DevServer::start(on_file(&binary, &database)).await.unwrap();
    let started = lines.with("embedded Temporal started");
    for part in ["INFO", &server.address().to_string(), "namespace=\"default\"", database.to_str().unwrap()] {
        assert!(started.contains(part), "{part} in {started}");
    }
    assert!(lines.with("not for production").starts_with("WARN"));
    assert!(!lines.text().contains("embedded Temporal stopped"));
    server.stop().await;
    assert!(lines.with("embedded Temporal stopped").starts_with("INFO"));
    assert!(!lines.text().contains("Failed to poll"), "what it says while it is stopped alarms nobody");
}

#[tokio::test]
async fn a_server_in_memory_says_so() {
    let Some(binary) = temporal_binary() else { return };
    let (lines, _guard) = Lines::capture();
    DevServer::start(in_memory(binary)).await.unwrap().stop().await;
    assert!(lines.with("embedded Temporal started").contains("in-memory"));
}
