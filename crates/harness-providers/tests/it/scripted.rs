//! Scripted turns: which one answers, what it yields, and what a wrong file is told.

use std::path::Path;

use harness_model::MessageId;
use harness_ports::{InputItem, ModelErrorKind, ModelProvider, ModelRequest};
use harness_providers::{ScriptFormat, ScriptedProvider};
use serde_json::json;

use crate::outcome::{answer, describe, request, result, run, user};

fn toml(text: &str) -> ScriptedProvider {
    ScriptedProvider::parse(text, ScriptFormat::Toml).unwrap()
}

/// What the script says to a request.
async fn play(script: &ScriptedProvider, request: ModelRequest) -> String {
    describe(&run(script, request).await)
}

fn said(text: &str) -> ModelRequest {
    let mut request = request();
    request.meta.message_text = text.to_owned();
    request.input = vec![user(text)];
    request
}

/// A request in a turn whose conversation goes on after a first message.
fn later(turn: u32, items: Vec<InputItem>) -> ModelRequest {
    let mut request = request();
    request.meta.turn = turn;
    request.input.extend(items);
    request
}

fn asked(id: &str, tool: &str) -> InputItem {
    InputItem::Model(answer("", &[(id, tool, "{}")]))
}

#[tokio::test]
async fn the_first_turn_whose_conditions_hold_answers() {
    let script = toml(
        r#"
        [[turns]]
        when = { text_contains = "order", turn = 1 }
        text = "first"
        [[turns]]
        when = { text_equals = "order" }
        text = "second"
        [[turns]]
        when = { message_id_prefix = "vip-" }
        text = "third"
        [[turns]]
        when = { instructions_contain = "brief", shown_contains = "Hello" }
        text = "fourth"
        [[turns]]
        text = "last"
        "#,
    );
    assert_eq!(play(&script, said("my order")).await, r#""first", Stop"#);
    let mut second = said(" order\n");
    second.meta.turn = 2;
    assert_eq!(play(&script, second).await, r#""second", Stop"#);
    let mut third = said("x");
    third.meta.message_id = Some(MessageId::from("vip-7"));
    assert_eq!(play(&script, third).await, r#""third", Stop"#);
    assert_eq!(play(&script, said("Hello")).await, r#""fourth", Stop"#);
    assert_eq!(play(&script, said("x")).await, r#""last", Stop"#);
}

#[tokio::test]
async fn order_is_what_the_conversation_holds() {
    let script = ScriptedProvider::parse(
        r"
turns:
  - when: { last_tool_result: { name: shop/refund, contains: done } }
    text: refunded
  - when: { tool_result: [{ name: shop/get_order, contains: '48213' }, { name: shop/policy }] }
    text: both
  - when: { asked: [shop/get_order], last_is: tool_result }
    text: one
  - when: { last_is: user }
    text: none
",
        ScriptFormat::Yaml,
    )
    .unwrap();
    let order = || vec![asked("a", "shop/get_order"), result("a", "shop/get_order", "{\"id\":\"48213\"}")];
    let policy = || vec![asked("b", "shop/policy"), result("b", "shop/policy", "30 days")];
    let refund = || vec![asked("c", "shop/refund"), result("c", "shop/refund", "done")];
    for (items, expected) in [
        (vec![], r#""none", Stop"#),
        (order(), r#""one", Stop"#),
        ([order(), policy()].concat(), r#""both", Stop"#),
        ([order(), policy(), refund()].concat(), r#""refunded", Stop"#),
        (
            [order(), policy(), refund(), vec![asked("d", "x"), result("d", "x", "")]].concat(),
            r#""both", Stop"#,
        ),
        (policy(), "ScriptExhausted, no status"),
    ] {
        let request = later(2, items);
        let first = play(&script, request.clone()).await;
        assert_eq!(first, expected);
        assert_eq!(play(&script, request).await, first, "the same request gets the same answer");
    }
}

#[tokio::test]
async fn everything_a_turn_can_do() {
    let script = toml(
        r#"
        [[turns]]
        when = { text_equals = "chunks" }
        chunks = ["a", { text = "b", delay_ms = 1 }, "c {{message_text}}"]
        chunk_delay_ms = 2
        usage = { input = 3, output = 0 }
        [[turns]]
        when = { text_equals = "calls" }
        delay_ms = 1
        text = "Wait."
        calls = [
            { name = "z/t", arguments = { z = "say {{message_text}}", a = [1.5, { b = true }], when = 2026-10-21 } },
            { name = "raw", arguments = "{ {{message_text}}", call_id = "mine" },
            { name = "none" },
        ]
        [[turns]]
        when = { text_equals = "refuse" }
        refusal = "No."
        [[turns]]
        when = { text_equals = "cut" }
        text = "Half of"
        finish = "length"
        [[turns]]
        when = { text_equals = "empty" }
        empty = true
        [[turns]]
        when = { text_equals = "busy" }
        text = "so far"
        error = { class = "retryable", after_ms = 1500, status = 529, message = "overloaded" }
        [[turns]]
        when = { text_equals = "broke" }
        error = { class = "quota" }
        "#,
    );
    let (deltas, _) = run(&script, said("chunks")).await.unwrap();
    assert_eq!(deltas, ["a", "b", "c chunks"]);
    for (text, expected) in [
        ("chunks", r#""abc chunks", Stop, in 3, out 0"#),
        (
            "calls",
            r#""Wait.", call-1-0 z/t {"z":"say calls","a":[1.5,{"b":true}],"when":"2026-10-21"}, mine raw { {{message_text}}, call-1-2 none {}, ToolCalls"#,
        ),
        ("refuse", r#"refusal "No.", Refusal"#),
        ("cut", r#""Half of", Length"#),
        ("empty", "Empty, no status"),
        ("busy", "retryable after 1.5s, 529"),
        ("broke", "Quota, no status"),
    ] {
        assert_eq!(play(&script, said(text)).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn waits_are_before_each_piece() {
    let script = toml(
        r#"
        [[turns]]
        delay_ms = 1000
        chunks = ["a", "b", { text = "c", delay_ms = 10 }]
        chunk_delay_ms = 100
        "#,
    );
    let start = tokio::time::Instant::now();
    run(&script, request()).await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 1000 + 100 + 100 + 10);
}

#[tokio::test]
async fn an_unanswered_request_says_what_was_shown() {
    let script = toml("[[turns]]\nwhen = { turn = 9 }\ntext = \"x\"");
    let items = vec![asked("a", "shop/get_order"), result("a", "shop/get_order", "{\"id\":\"48213\"}")];
    let error = run(&script.with_name("demo"), later(2, items)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ScriptExhausted);
    assert_eq!(
        error.message,
        r#"demo: none of the 1 turns answers turn 2: message "m-1" says "Hello"; the conversation ends with a result of shop/get_order "{\"id\":\"48213\"}"; tool results so far: shop/get_order"#
    );
}

#[tokio::test]
async fn a_turn_may_expect_what_the_model_was_shown() {
    let script = toml(
        r#"
        [[turns]]
        when = { turn = 2 }
        expect = { last_is = "tool_result", nowhere_contains = "hunter22", instructions_contain = "brief" }
        text = "fine"
        "#,
    );
    let with = |text: &str| later(2, vec![asked("a", "shop/get_order"), result("a", "shop/get_order", text)]);
    assert_eq!(play(&script, with("ok")).await, r#""fine", Stop"#);
    let leaked = run(&script, with("the key is hunter22")).await.unwrap_err();
    assert_eq!(leaked.kind, ModelErrorKind::ScriptExhausted);
    assert!(leaked.message.contains("expects something else (nowhere_contains) than turn 2"), "{leaked}");
    let other = run(&script, later(2, Vec::new())).await.unwrap_err();
    assert!(other.message.contains("(last_is)"), "{other}");
    let secret_prompt = ModelRequest { instructions: "brief hunter22".to_owned(), ..with("ok") };
    assert!(run(&script, secret_prompt).await.is_err());
}

#[tokio::test]
async fn the_model_is_the_one_asked_for() {
    let script = toml("model = \"m\"\ncontext_window_tokens = 9\n[[turns]]\ntext = \"x\"").with_name("demo");
    let info = script.info();
    assert_eq!(
        json!([info.provider, info.model, info.context_window_tokens, info.api]),
        json!(["demo", "m", 9, "scripted"])
    );
    let asked = ModelRequest { model: Some("other".to_owned()), ..request() };
    let (_, output) = run(&script, asked).await.unwrap();
    assert_eq!((output.model.as_str(), output.provider.as_str()), ("other", "demo"));
}

/// The problems of a script, one a line.
fn problems(text: &str, format: ScriptFormat) -> String {
    ScriptedProvider::parse(text, format).unwrap_err().to_string()
}

#[test]
fn every_problem_is_listed_with_its_line() {
    let text = r#"model = ""
colour = "red"

[[turns]]
text = "a"
chunks = []

[turns.when]
text_contain = "x"
turn = 0
last_is = "model"
tool_result = [{ name = "a" }, { contains = "" }]

[[turns]]
when.turn = 2
calls = [{ arguments = 3 }]
error = { after_ms = 5, class = "quota" }

[[turns]]
text = "always"

[[turns]]
when = { turn = 1 }

[[turns]]
text = "x"
delay_ms = "soon"
refusal = "no"
empty = false
"#;
    same_lines(
        &problems(text, ScriptFormat::Toml),
        "script:1: `model` is empty; leave it out instead
script:2: `colour` is not known here; possible are: model, context_window_tokens, turns
script:6: `text` and `chunks` are two ways to write the same; keep one
script:6: `chunks` is empty; leave it out instead
script:9: `text_contain` is not known here; possible are: text_contains, text_equals, message_id_prefix, turn, last_is, asked, tool_result, last_tool_result, shown_contains, nowhere_contains, instructions_contain
script:10: `turn` is a whole number from 1 to 4294967295
script:11: `last_is` is one of: user, tool_result
script:12: `name` is missing
script:12: `contains` is empty; leave it out instead
script:16: `calls` has no place beside `error`
script:16: `name` is missing
script:16: `arguments` is a table, or text that is sent as it is
script:17: `after_ms` belongs to the class `retryable`
script:22: never reached: the turn before has no `when` and answers everything
script:22: the turn does nothing: give it text, chunks, calls, refusal, error, or empty = true
script:26: `text` has no place beside `empty`
script:27: `delay_ms` is a whole number from 0 to 600000
script:29: `empty` and `refusal` exclude each other
script:29: `empty` is true, or left out
",
    );
    same_lines(
        &problems(
            "turns:\n  - when: { turn: 1 }\n    text: 7\n  - when:\n      turn: one\n    text: x\n  - 5\n",
            ScriptFormat::Yaml,
        ),
        "script:3: `text` is text
script:5: `turn` is a whole number from 1 to 4294967295
script:7: a table is expected here
",
    );
}

/// Compares line by line, which reads better than one long string when it fails.
#[track_caller]
fn same_lines(found: &str, expected: &str) {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(found), lines(expected));
}

#[test]
fn broken_files_say_where() {
    let found = problems("a = \nb = = 2\nturns = 1\n", ScriptFormat::Toml);
    assert!(
        found.contains("script:1: not valid TOML") && found.contains("script:2: not valid TOML"),
        "{found}"
    );
    for (text, line) in [("turns:\n  - a: 1\n    a: 2\n", 2), ("turns: [\n", 2), ("- x\n- !tag y\n", 0)] {
        let found = problems(text, ScriptFormat::Yaml);
        assert!(line == 0 || found.starts_with(&format!("script:{line}: not valid YAML")), "{found}");
    }
    for text in ["", "turns = []", "turns = 3", "[turns]"] {
        problems(text, ScriptFormat::Toml);
    }
    let twice = r#"turns = { calls = [{ name = "a", call_id = "x" }, { name = "a", call_id = "x" }] }"#;
    assert_eq!(
        problems(twice, ScriptFormat::Toml),
        "script:1: two calls of one turn have the same `call_id`"
    );
    let deep = format!("turns: {}", "[".repeat(1_000));
    assert!(problems(&deep, ScriptFormat::Yaml).contains("not valid YAML"));
}

#[test]
fn files_are_read_by_their_ending() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let path = write("a.toml", "[[turns]]\ntext = \"x\"\n");
    assert_eq!(ScriptedProvider::load(&path).unwrap().info().endpoint, path.display().to_string());
    for ending in ["yaml", "yml"] {
        ScriptedProvider::load(&write(&format!("a.{ending}"), "turns:\n  - text: x\n")).unwrap();
    }
    let broken = write("b.toml", "[[turns]]\ntexts = \"x\"\n");
    let error = ScriptedProvider::load(&broken).unwrap_err();
    assert_eq!(error.problems[0].line, Some(1), "{error}");
    assert_eq!(error.code().as_str(), "model.script_invalid");
    let large = write("c.toml", &" ".repeat(1_048_577));
    assert!(
        ScriptedProvider::load(&large).unwrap_err().to_string().ends_with("is larger than 1048576 bytes")
    );
    assert!(ScriptedProvider::load(&folder.path().join("none.toml")).is_err());
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripted-models.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut examples = 0;
    for block in text.split("```").skip(1).step_by(2) {
        let (language, body) = block.split_once('\n').unwrap();
        let format = match language {
            "toml" => ScriptFormat::Toml,
            "yaml" => ScriptFormat::Yaml,
            other => panic!("an example in {other}"),
        };
        ScriptedProvider::parse(body, format).unwrap_or_else(|error| panic!("{error}\n{body}"));
        examples += 1;
    }
    assert!(examples >= 4, "{examples} examples");
}
