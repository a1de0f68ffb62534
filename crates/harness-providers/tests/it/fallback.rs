//! Which model answers which try.

use std::{num::NonZeroU32, sync::Arc};

use harness_ports::{ModelProvider, ModelRequest};
use harness_providers::{FallbackModel, FallbackProvider, ScriptFormat, ScriptedProvider};

use crate::outcome::{describe, request, run, run_attempt};

fn says(name: &str, window: u32) -> Arc<dyn ModelProvider> {
    let script = format!("context_window_tokens = {window}\nturns = [{{ text = \"{name}\" }}]");
    let scripted = ScriptedProvider::parse(&script, ScriptFormat::Toml).unwrap();
    Arc::new(scripted.with_name(name))
}

fn fallback(tries_each: u32) -> FallbackProvider {
    let other = |name: &str, window, model: Option<&str>| FallbackModel {
        provider: says(name, window),
        model: model.map(str::to_owned),
        reasoning_effort: None,
    };
    let others = vec![other("b", 4_000, Some("b-large")), other("c", 16_000, None)];
    FallbackProvider::new(says("a", 8_000), others, NonZeroU32::new(tries_each).unwrap())
}

async fn answers(tries_each: u32) -> String {
    let provider = fallback(tries_each);
    let chosen = ModelRequest { model: Some("chosen".to_owned()), ..request() };
    let mut answers = Vec::new();
    for attempt in 1..=7 {
        let (_, output) = run_attempt(&provider, chosen.clone(), attempt).await.unwrap();
        assert_eq!(output.text, output.provider);
        answers.push(format!("{}:{}", output.provider, output.model));
    }
    answers.join(" ")
}

#[tokio::test]
async fn each_model_gets_its_tries_in_order_and_the_last_one_the_rest() {
    assert_eq!(answers(1).await, "a:chosen b:b-large c:scripted c:scripted c:scripted c:scripted c:scripted");
    assert_eq!(answers(2).await, "a:chosen a:chosen b:b-large b:b-large c:scripted c:scripted c:scripted");
    assert_eq!(answers(9).await, ["a:chosen"; 7].join(" "));
}

#[tokio::test]
async fn a_call_that_is_not_counted_is_a_first_try() {
    assert_eq!(describe(&run(&fallback(1), request()).await), r#""a", Stop"#);
    assert_eq!(describe(&run_attempt(&fallback(1), request(), u32::MAX).await), r#""c", Stop"#);
}

#[test]
fn a_request_has_to_fit_every_model() {
    let info = fallback(1).info();
    assert_eq!((info.provider.as_str(), info.context_window_tokens), ("a", 4_000));
}
