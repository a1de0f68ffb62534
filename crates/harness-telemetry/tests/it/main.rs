//! What log lines look like, and what never gets into one.

use std::{error::Error, os::unix::fs::PermissionsExt, sync::Arc};

use harness_model::{Redactor, Secret, Timestamp};
use harness_ports::Clock;
use harness_telemetry::{LogCapture, LogError, LogLevel, LogOptions, LogTarget, ScopedLogs, scoped_logs};
use tracing::{debug, error, field::Empty, info, info_span, warn};

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_709_210_096_789)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot keep the change")]
struct Outer(#[source] std::io::Error);

fn options(level: LogLevel, target: LogTarget) -> LogOptions {
    let redactor = Arc::new(Redactor::new([Secret::new("hunter22")]));
    LogOptions { level, target, redactor, clock: Arc::new(FixedClock) }
}

#[expect(clippy::unwrap_used, reason = "a capture that cannot be made fails its test")]
fn capture(level: LogLevel) -> (LogCapture, ScopedLogs) {
    let capture = LogCapture::default();
    let guard = scoped_logs(options(level, LogTarget::Capture(capture.clone()))).unwrap();
    (capture, guard)
}

#[test]
fn a_line_is_one_json_object_with_fixed_leading_keys() {
    let (capture, _guard) = capture(LogLevel::Info);
    info!(target: "harness_engine_local::runner", turn = 3, ok = true, attempt = 2, task_id = "t-1", "turn {}", "ended");
    assert_eq!(
        capture.lines(),
        [
            r#"{"ts":"2024-02-29T12:34:56.789Z","level":"INFO","logger":"harness_engine_local::runner","msg":"turn ended","task_id":"t-1","attempt":2,"turn":3,"ok":true}"#
        ]
    );
}

#[test]
fn fields_of_spans_belong_to_the_lines_inside() {
    let (capture, _guard) = capture(LogLevel::Info);
    let task = info_span!(target: "harness_x", "task", task_id = "t-1", operation = Empty, shade = "outer");
    task.in_scope(|| {
        task.record("operation", "tool.invoked");
        info_span!(target: "harness_x", "call", shade = "inner")
            .in_scope(|| info!(target: "harness_x", "in"));
        info!(target: "harness_x", task_id = "t-2", "own field wins");
    });
    info!(target: "harness_x", "out");
    let records = capture.records();
    assert_eq!(records[0]["task_id"], "t-1");
    assert_eq!(records[0]["operation"], "tool.invoked");
    assert_eq!(records[0]["shade"], "inner");
    assert_eq!(records[1]["task_id"], "t-2");
    assert!(records[2].get("task_id").is_none());
}

#[test]
fn secrets_are_masked_in_messages_fields_and_spans() {
    let (capture, _guard) = capture(LogLevel::Info);
    let span = info_span!(target: "harness_x", "s", header = "Bearer abcdefgh12");
    span.in_scope(|| {
        warn!(target: "harness_x", key = "hunter22", debug = ?"sk-abcdefghij", token = "short", tokens = 7, "it is hunter22");
    });
    let line = capture.lines().concat();
    for secret in ["hunter22", "abcdefgh", "short"] {
        assert!(!line.contains(secret), "{line}");
    }
    assert!(line.contains(r#""msg":"it is [REDACTED]""#) && line.contains(r#""tokens":7"#), "{line}");
}

#[test]
fn a_line_cannot_be_forged_and_has_no_escapes() {
    let (capture, _guard) = capture(LogLevel::Info);
    info!(target: "harness_x", level = "ERROR", peer = "a\u{1b}[2J\u{202e}\n{\"level\":\"ERROR\"}", "first\nsecond");
    let (lines, records) = (capture.lines(), capture.records());
    assert_eq!(lines.len(), 1);
    assert!(!lines[0].contains('\n') && !lines[0].contains("\\u001b") && !lines[0].contains('\u{202e}'));
    assert_eq!(records[0]["level"], "INFO");
    assert_eq!(records[0]["level_"], "ERROR");
    assert_eq!(records[0]["msg"], "first\nsecond");
}

#[test]
fn long_values_are_cut_after_masking() {
    let (capture, _guard) = capture(LogLevel::Info);
    let long = format!("{}hunter22", "x".repeat(8_188));
    info!(target: "harness_x", long, "m");
    let records = capture.records();
    let value = records[0]["long"].as_str().unwrap();
    assert!(value.chars().count() == 8_192 && !value.contains("hunt"), "{}", &value[8_180..]);
}

#[test]
fn errors_are_written_with_their_causes() {
    let (capture, _guard) = capture(LogLevel::Info);
    let failure = Outer(std::io::Error::other("disk full"));
    error!(target: "harness_x", error = &failure as &dyn Error, "failed");
    assert_eq!(capture.records()[0]["error"], "cannot keep the change: disk full");
}

#[test]
fn levels_count_for_the_harness_and_others_are_kept_quiet() {
    for (level, expected) in [
        (LogLevel::Error, vec![]),
        (LogLevel::Warning, vec!["own warn", "foreign warn"]),
        (LogLevel::Info, vec!["own warn", "own info", "foreign warn"]),
        (LogLevel::Debug, vec!["own warn", "own info", "own debug", "foreign warn"]),
    ] {
        let (capture, _guard) = capture(level);
        warn!(target: "tiny_harness", "own warn");
        info!(target: "harness_store::writer", "own info");
        debug!(target: "harness_store", "own debug");
        warn!(target: "hyper", "foreign warn");
        info!(target: "hyper", "foreign info");
        let messages: Vec<String> =
            capture.records().iter().map(|record| record["msg"].as_str().unwrap().to_owned()).collect();
        assert_eq!(messages, expected, "{level:?}");
    }
}

#[test]
fn names_of_levels_are_read_in_any_case() {
    assert_eq!("warn".parse(), Ok(LogLevel::Warning));
    assert_eq!("Debug".parse(), Ok(LogLevel::Debug));
    for level in LogLevel::ALL {
        assert_eq!(level.name().parse(), Ok(level));
    }
    assert!("loud".parse::<LogLevel>().is_err());
}

#[test]
fn a_file_is_appended_to_and_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, "before\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    {
        let _guard = scoped_logs(options(LogLevel::Info, LogTarget::File(path.clone()))).unwrap();
        info!(target: "harness_x", "after");
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("before\n{") && text.ends_with("}\n"), "{text}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let refused = scoped_logs(options(LogLevel::Info, LogTarget::File(folder.path().join("no/log"))));
    assert!(matches!(refused, Err(LogError::OpenFile { .. })));
}
