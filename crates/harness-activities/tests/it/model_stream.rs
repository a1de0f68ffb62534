//! The words of an answer on their way to subscribers.

use std::{sync::Arc, time::Duration};

use harness_agent::{AnswerText, ModelAnswer};
use harness_model::{Content, ModelOutput};
use harness_ports::FailureKind;
use harness_testkit::{Fault, FaultStore};

use crate::{
    fixture::{Fixture, SECRET, Speak, answer, call, model_input, say},
    slow_store::SlowStore,
};

async fn begun() -> Fixture {
    let fixture = Fixture::new();
    fixture.begin_task("It is broken").await;
    fixture
}

/// `words`, each after a pause that makes it a chunk of its own, then the whole answer.
fn spoken(words: &[String]) -> Vec<Speak> {
    let pauses = words.iter().flat_map(|word| [Speak::Wait(100), say(word)]);
    pauses.chain([Speak::Wait(100), Speak::Done(answer(&words.concat()))]).collect()
}

fn sixty() -> Vec<String> {
    (1..=60).map(|n| format!("chunk {n}. ")).collect()
}

/// The text, whether it was streamed, and what is left of it.
async fn text_of(fixture: &Fixture, answer: &ModelAnswer) -> (String, bool, String) {
    let AnswerText { text, streamed, tail } = answer.answer.as_ref().expect("an answer with text");
    (fixture.text(text).await, *streamed, fixture.text(tail).await)
}

#[tokio::test(start_paused = true)]
async fn an_instant_model_costs_no_chunk() {
    let fixture = begun().await;
    fixture.script([say("All "), say("is "), say("well."), Speak::Done(answer("All is well."))]);
    let answered = fixture.ask(&model_input(), "run-1").await;
    assert_eq!(fixture.chunks().await, Vec::<String>::new());
    let whole = "All is well.".to_owned();
    assert_eq!(text_of(&fixture, &answered).await, (whole.clone(), false, whole));
    assert_eq!(answered.model, "scripted:m-1");
}

#[tokio::test(start_paused = true)]
async fn each_delta_of_a_slow_model_is_one_chunk() {
    let fixture = begun().await;
    fixture.script(spoken(&sixty()));
    let answered = fixture.ask(&model_input(), "run-1").await;
    let chunks = fixture.chunks().await;
    assert_eq!(chunks.len(), 60);
    assert_eq!((chunks[0].as_str(), chunks[59].as_str()), ("=chunk 1. ", "+chunk 60. "));
    assert_eq!(text_of(&fixture, &answered).await, (sixty().concat(), true, String::new()));
    assert_eq!(answered.answer.unwrap().tail, Content::Inline(String::new()));
}

#[tokio::test(start_paused = true)]
async fn deltas_that_come_together_are_one_chunk_and_the_end_is_the_tail() {
    let fixture = begun().await;
    let script = [say("One "), Speak::Wait(1), say("two "), Speak::Wait(50), say("three."), Speak::Wait(1)];
    fixture.script(script.into_iter().chain([Speak::Done(answer("One two three."))]));
    let answered = fixture.ask(&model_input(), "run-1").await;
    assert_eq!(fixture.chunks().await, ["=One two "]);
    assert_eq!(text_of(&fixture, &answered).await, ("One two three.".to_owned(), true, "three.".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn deltas_collect_while_a_chunk_is_made_durable() {
    let mut fixture = begun().await;
    fixture.store = Arc::new(SlowStore { inner: Arc::clone(&fixture.store), commit_ms: 45 });
    let words: Vec<String> = (1..=12).map(|n| format!("{n} ")).collect();
    let pauses = words.iter().flat_map(|word| [Speak::Wait(10), say(word)]);
    fixture.script(pauses.chain([Speak::Done(answer(&words.concat()))]));
    let answered = fixture.ask(&model_input(), "run-1").await;
    let (_, streamed, tail) = text_of(&fixture, &answered).await;
    assert!(streamed);
    let chunks = fixture.chunks().await;
    assert!((2..=4).contains(&chunks.len()), "{chunks:?}");
    let shown: String = chunks.iter().map(|chunk| &chunk[1..]).collect();
    assert_eq!(format!("{shown}{tail}"), words.concat());
}

#[tokio::test(start_paused = true)]
async fn a_killed_run_is_taken_up_with_every_chunk_once() {
    for killed_after_ms in [250, 3_050, 3_106, 5_990] {
        let fixture = begun().await;
        fixture.script(spoken(&sixty()));
        let input = model_input();
        let killed = fixture.ask(&input, "run-1");
        assert!(tokio::time::timeout(Duration::from_millis(killed_after_ms), killed).await.is_err());
        let before = fixture.chunks().await.len();
        assert!(before > 0 && before < 60);
        fixture.script(spoken(&sixty()));
        let answered = fixture.ask(&input, "run-2").await;
        let chunks: Vec<String> = fixture.chunks().await.iter().map(|chunk| chunk[1..].to_owned()).collect();
        assert_eq!(chunks, sixty(), "killed after {killed_after_ms} ms");
        assert_eq!(text_of(&fixture, &answered).await, (sixty().concat(), true, String::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_says_something_else_starts_anew() {
    let fixture = begun().await;
    let error = harness_ports::ModelError::new(
        harness_ports::ModelErrorKind::Retryable { after: Some(Duration::from_secs(2)) },
        "reset",
    );
    fixture.script([say("Perhaps "), Speak::Wait(50), say("not "), Speak::Wait(50), Speak::Fail(error)]);
    let failure = fixture.outcome(&model_input(), "run-1").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Retryable { after_ms: Some(2_000) });
    fixture.script(spoken(&["Certainly ".to_owned(), "so.".to_owned()]));
    let answered = fixture.ask(&model_input(), "run-2").await;
    assert_eq!(fixture.chunks().await, ["=Perhaps ", "+not ", "=Certainly ", "+so."]);
    assert_eq!(text_of(&fixture, &answered).await, ("Certainly so.".to_owned(), true, String::new()));
}

#[tokio::test(start_paused = true)]
async fn words_that_an_instant_retry_does_not_repeat_are_taken_back() {
    let fixture = begun().await;
    fixture.script([say("Perhaps "), Speak::Wait(50), Speak::Hang]);
    let input = model_input();
    let killed = fixture.ask(&input, "run-1");
    assert!(tokio::time::timeout(Duration::from_millis(100), killed).await.is_err());
    let silent = ModelOutput { calls: vec![call("c", "list_skills", "{}")], ..answer("") };
    fixture.script([Speak::Done(silent)]);
    let answered = fixture.ask(&input, "run-2").await;
    assert_eq!(text_of(&fixture, &answered).await, (String::new(), false, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_secret_between_deltas_is_never_published() {
    let fixture = begun().await;
    let (head, tail) = SECRET.split_at(6);
    let words = ["The key is ".to_owned(), head.to_owned(), tail.to_owned(), ", done.".to_owned()];
    fixture.script(spoken(&words));
    let answered = fixture.ask(&model_input(), "run-1").await;
    assert_eq!(fixture.chunks().await, ["=The key is ", "+[REDACTED]", "+, done."]);
    assert_eq!(text_of(&fixture, &answered).await.0, "The key is [REDACTED], done.");
}

#[tokio::test(start_paused = true)]
async fn an_answer_survives_a_chunk_that_was_not_kept() {
    let mut fixture = begun().await;
    fixture.store = FaultStore::over(Arc::clone(&fixture.store), Fault::Fail { first: 2, last: 2 });
    fixture.script(spoken(&["One ".to_owned(), "two ".to_owned(), "three.".to_owned()]));
    let answered = fixture.ask(&model_input(), "run-1").await;
    assert_eq!(fixture.chunks().await, ["=One "]);
    assert_eq!(
        text_of(&fixture, &answered).await,
        ("One two three.".to_owned(), true, "two three.".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_the_stream() {
    let fixture = begun().await;
    fixture.script([say("One "), Speak::Hang]);
    let input = model_input();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(Arc::strong_count(&fixture.model.streams), 2);
        fixture.cancel.cancel();
    };
    let (failure, ()) = tokio::join!(fixture.outcome(&input, "run-1"), cancel);
    assert_eq!(failure.unwrap_err().kind, FailureKind::Canceled);
    assert_eq!(Arc::strong_count(&fixture.model.streams), 1);
    assert_eq!(fixture.chunks().await, ["=One "]);
}
