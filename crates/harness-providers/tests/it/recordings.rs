//! Recording and playing back: what is written, what is served, and what is refused.

use std::{fs, path::Path, sync::Arc, time::Duration};

use harness_model::{Redactor, Secret};
use harness_ports::{InputItem, ModelErrorKind, ModelProvider, ModelRequest};
use harness_providers::{RecordingProvider, ReplayProvider, ScriptFormat, ScriptedProvider};
use serde_json::{Value, json};

use crate::outcome::{describe, request, result, run, run_attempt, user};

const SCRIPT: &str = r#"
[[turns]]
when = { tool_result = { name = "create_plan" } }
chunks = ["Do", "ne: hun", "ter22."]
usage = { input = 12, output = 3 }

[[turns]]
when = { text_contains = "overload" }
chunks = ["Let me "]
error = { class = "retryable", message = "busy with hunter22", status = 529, after_ms = 1500 }

[[turns]]
calls = [{ name = "create_plan", arguments = { n = 1.5, note = "hunter22" }, call_id = "c1" }]
"#;

fn redactor() -> Redactor {
    Redactor::new([Secret::new("hunter22")])
}

fn recorder(dir: &Path) -> RecordingProvider {
    let scripted = ScriptedProvider::parse(SCRIPT, ScriptFormat::Toml).unwrap();
    RecordingProvider::new(Arc::new(scripted), dir, redactor()).unwrap()
}

/// The request that follows an answer, with one tool result of this text.
fn next(output: harness_model::ModelOutput, text: &str) -> ModelRequest {
    let input = vec![user("Hello"), InputItem::Model(output), result("c1", "create_plan", text)];
    ModelRequest { input, ..request() }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_conversation_is_played_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("recordings");
    let recorder = recorder(&dir);
    let (_, live_first) = run(&recorder, request()).await.unwrap();
    assert_eq!(live_first.calls[0].arguments, r#"{"n":1.5,"note":"hunter22"}"#);
    let (deltas, _) = run(&recorder, next(live_first, "my key is hunter22")).await.unwrap();
    assert_eq!(deltas, ["Do", "ne: hun", "ter22."], "recording changes nothing");
    assert_eq!(names(&dir).len(), 2);

    let replay = ReplayProvider::load(&dir).unwrap().with_redactor(redactor());
    assert_eq!(replay.info().provider, recorder.info().provider);
    assert_eq!(replay.info().context_window_tokens, recorder.info().context_window_tokens);
    for _ in 0..2 {
        let (_, first) = run(&replay, request()).await.unwrap();
        assert_eq!(first.calls[0].arguments, r#"{"n":1.5,"note":"[REDACTED]"}"#);
        // Another task with the same conversation is answered too; where a secret was spread, the pieces are joined.
        let mut other = next(first, "my key is hunter22");
        other.cache_key = "task-2".to_owned();
        other.meta.task_id = "task-2".into();
        let (deltas, second) = run(&replay, other).await.unwrap();
        assert_eq!(deltas, ["Done: [REDACTED]."]);
        assert_eq!((second.usage.input, second.usage.output), (Some(12), Some(3)));
    }
}

#[tokio::test]
async fn nothing_secret_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path());
    let (_, output) = run(&recorder, request()).await.unwrap();
    run(&recorder, next(output, "my key is hunter22")).await.unwrap();
    let overloaded = ModelRequest { input: vec![user("overload, hunter22")], ..request() };
    let overloaded = ModelRequest {
        meta: harness_ports::RequestMeta { message_text: "overload".to_owned(), ..request().meta },
        ..overloaded
    };
    run(&recorder, overloaded).await.unwrap_err();
    let names = names(folder.path());
    assert_eq!(names.len(), 3);
    for name in names {
        let text = fs::read_to_string(folder.path().join(&name)).unwrap();
        assert!(!text.contains("hunter22") && text.contains("[REDACTED]"), "{name}: {text}");
        assert!(name.starts_with("turn-00001-") && name.ends_with("-try-1.json"), "{name}");
        let file: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(file["format"], "tiny-harness/model-exchange.v1");
        assert_eq!((&file["task_id"], &file["turn"]), (&json!("task-1"), &json!(1)));
    }
}

#[tokio::test]
async fn a_request_that_differs_is_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path());
    let (_, output) = run(&recorder, request()).await.unwrap();
    run(&recorder, next(output.clone(), "ok")).await.unwrap();
    let replay = ReplayProvider::load(folder.path()).unwrap().with_redactor(redactor());

    let error = run(&replay, next(output.clone(), "not ok")).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ScriptExhausted);
    assert!(
        error.message.starts_with("this request was not recorded; it differs from turn-00001-"),
        "{error}"
    );
    assert!(error.message.contains(r#"/input/2/parts/0/text: "not ok", recorded "ok""#), "{error}");

    let changed = [
        ModelRequest { instructions: "Be long.".to_owned(), ..request() },
        ModelRequest { tools: Arc::default(), ..request() },
        ModelRequest { max_output_tokens: 7, ..request() },
        ModelRequest { model: Some("other".to_owned()), ..request() },
        ModelRequest { response_format: Some(json!({"type": "object"})), ..request() },
        ModelRequest { input: vec![user("Hello"), user(&"word ".repeat(50_000))], ..request() },
    ];
    for request in changed {
        let error = run(&replay, request).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::ScriptExhausted);
    }
}

#[tokio::test]
async fn each_try_of_a_call_is_played_back() {
    let folder = tempfile::tempdir().unwrap();
    let overloaded = || {
        let mut request = request();
        request.meta.message_text = "overload".to_owned();
        request
    };
    let calm = r#"turns = [{ text = "Hi" }]"#;
    let calm = Arc::new(ScriptedProvider::parse(calm, ScriptFormat::Toml).unwrap());
    let second = RecordingProvider::new(calm, folder.path(), redactor()).unwrap();
    run_attempt(&recorder(folder.path()), overloaded(), 1).await.unwrap_err();
    run_attempt(&second, overloaded(), 2).await.unwrap();
    let replay = ReplayProvider::load(folder.path()).unwrap();
    for (attempt, expected) in [
        (1, "retryable after 1.5s, 529"),
        (2, r#""Hi", Stop"#),
        (3, r#""Hi", Stop"#),
        (1, "retryable after 1.5s, 529"),
    ] {
        assert_eq!(describe(&run_attempt(&replay, overloaded(), attempt).await), expected);
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let script = "[[turns]]\nchunks = [\"a\", \"b\"]\nchunk_delay_ms = 600000\ndelay_ms = 0\n";
    let scripted = ScriptedProvider::parse(script, ScriptFormat::Toml).unwrap();
    let recorder = RecordingProvider::new(Arc::new(scripted), folder.path(), redactor()).unwrap();
    let call = run(&recorder, request());
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn folders_that_hold_no_recordings_are_refused_with_every_problem() {
    let folder = tempfile::tempdir().unwrap();
    let problems = |dir: &Path| ReplayProvider::load(dir).unwrap_err().problems;
    assert!(problems(&folder.path().join("none"))[0].contains("cannot be read"));
    assert!(problems(folder.path())[0].contains("holds 0 recordings"));
    fs::write(folder.path().join("a.json"), "{").unwrap();
    fs::write(folder.path().join("b.json"), r#"{"format":"tiny-harness/model-exchange.v9"}"#).unwrap();
    fs::write(folder.path().join("c.txt"), "not looked at").unwrap();
    let found = problems(folder.path());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("a.json: not valid JSON"), "{found:?}");
    assert!(found[1].contains("b.json: is not a recording: the format is"), "{found:?}");
    let file = folder.path().join("c.txt");
    let scripted = Arc::new(ScriptedProvider::parse(SCRIPT, ScriptFormat::Toml).unwrap());
    assert!(RecordingProvider::new(scripted, &file, redactor()).is_err());
}
