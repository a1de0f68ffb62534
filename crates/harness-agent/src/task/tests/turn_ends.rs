//! Ends of turns that meet something else: messages that say nothing to the model, refusals, effects, leaving people.

use harness_model::{
    Content, Finish, Lifecycle, NewStep, Participant, ParticipantKind, ParticipantRole, TaskMode, TaskPatch,
    limits,
};
use harness_ports::FailureKind;

use super::driver::{
    Driver, accepted, answer, ask, block, call, command, failure, message, not_welcome, own_text, refused,
    start, tool, tool_result,
};
use crate::{
    AcceptedMessage, CallAction, IntrinsicRequest, ModelOutcome, PlannedCall, SlashCommand, TaskSettings,
    Verdict,
};

fn reject(id: &str) -> PlannedCall {
    call(id, CallAction::Intrinsic(IntrinsicRequest::RejectTask { reason: "not mine".into() }))
}

fn patch(patch: TaskPatch) -> Verdict {
    Verdict::Accepted(Box::new(AcceptedMessage { patch: Some(patch), ..AcceptedMessage::default() }))
}

#[test]
fn a_message_without_news_does_not_make_the_model_speak_again() {
    let help = || command(SlashCommand::Help);
    for verdict in [&not_welcome as &dyn Fn() -> Verdict, &help] {
        let mut task = Driver::modeling(Lifecycle::Delegated);
        task.say(&message("m2"));
        task.model(answer("done", vec![]));
        task.took();
        task.intake_with(|_| verdict());
        let took = task.took();
        assert!(
            took.ends_with(", COMPLETED \"done\", close") || took.ends_with("\", COMPLETED \"done\", close"),
            "{took}"
        );
        assert!(!took.contains("invoke_model"), "{took}");
        assert_eq!(task.spoken, 1, "the answer is in the history once");
    }
    let mut task = Driver::modeling(Lifecycle::Conversation);
    task.model(answer("", vec![ask("q", "Ship it?")]));
    task.say(&message("m2"));
    task.intake();
    task.say(&message("m3"));
    task.model(answer("noted", vec![]));
    task.took();
    task.intake_with(|_| not_welcome());
    assert_eq!(
        task.took(),
        "WORKING \"message not accepted: not a participant\", INPUT_REQUIRED \"Ship it?\""
    );
}

#[test]
fn news_is_read_whatever_the_messages_after_it_are() {
    let mut task = Driver::modeling(Lifecycle::Conversation);
    task.model(answer("hello", vec![]));
    task.say(&message("m2"));
    task.say(&message("m3"));
    task.intake();
    task.took();
    task.intake_with(|_| not_welcome());
    assert_eq!(task.took(), "WORKING \"message not accepted: not a participant\", run invoke_model");
}

#[test]
fn whoever_is_refused_hears_so_once_every_message_is_read() {
    let parked = || {
        let mut task = Driver::modeling(Lifecycle::Conversation);
        task.model(answer("hello", vec![]));
        task.say(&message("m2"));
        task.say(&message("m3"));
        task.intake_with(|_| not_welcome());
        assert!(
            task.took().ends_with("run intake, run intake"),
            "no status ends the turn of m3 before it is read"
        );
        task
    };
    let mut task = parked();
    task.intake();
    assert_eq!(task.took(), "history, WORKING \"message not accepted: not a participant\", run invoke_model");
    let mut task = parked();
    task.intake_with(|_| command(SlashCommand::Help));
    let took = task.took();
    assert!(took.contains("not a participant\\n/complete ends"), "{took}");
}

#[test]
fn a_first_message_that_asks_for_help_is_no_reason_to_reject_the_task() {
    let mut task = Driver::new(start(Lifecycle::Delegated));
    task.say(&message("m1"));
    task.took();
    task.intake_with(|_| command(SlashCommand::Help));
    assert!(task.took().starts_with("history, INPUT_REQUIRED/awaiting-next-message \"/complete ends"));
}

#[test]
fn nothing_is_begun_after_a_task_is_refused() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![reject("r"), tool("pay", false)]));
    assert_eq!(task.took(), "WORKING [r:succeeded pay:canceled], REJECTED \"not mine\", close");
}

#[test]
fn a_refusal_waits_for_messages() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.say(&message("m2"));
    task.model(answer("", vec![reject("r")]));
    assert_eq!(task.took(), "WORKING [r:succeeded], run intake");
    task.intake();
    assert_eq!(task.took(), "history, run invoke_model", "what came in may change everything");

    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.say(&message("m2"));
    let ModelOutcome::Answered(mut refusal) = answer("I will not", vec![]) else { panic!() };
    refusal.finish = Finish::Refusal;
    task.model(ModelOutcome::Answered(refusal));
    assert_eq!(task.took(), "artifact answer-1, WORKING \"I will not\", run intake");
    task.intake_with(|_| not_welcome());
    assert!(task.took().ends_with("FAILED \"I will not\", close"));
}

#[test]
fn what_an_earlier_try_may_have_done_is_not_forgotten() {
    let pay = || {
        call(
            "pay",
            CallAction::Tool {
                arguments: block("{}"),
                idempotent: false,
                read_only: false,
                deduplicates: true,
            },
        )
    };
    let uncertain = || {
        let mut task = Driver::modeling(Lifecycle::Delegated);
        task.model(answer("", vec![pay()]));
        let id = task.only("invoke_tool");
        task.fail(&id, failure(FailureKind::TimedOut));
        task
    };
    let mut task = uncertain();
    for _ in 1..5 {
        task.fire();
        let id = task.only("invoke_tool");
        task.fail(&id, failure(FailureKind::Retryable { after_ms: None }));
    }
    assert!(own_text(&task.state(), "pay").starts_with("[tool.outcome_unknown]"));

    let mut task = uncertain();
    task.took();
    task.say(&harness_model::InboundMessage { interrupt: true, ..message("m2") });
    assert_eq!(task.took(), "cancel timer, WORKING [pay:outcome_unknown], run intake");

    let mut task = uncertain();
    task.cancel();
    assert!(task.took().ends_with("CANCELED \"canceled by client\" [pay:outcome_unknown], close"));
}

#[test]
fn a_persons_task_keeps_nothing_for_a_model() {
    let mut input = start(Lifecycle::Conversation);
    input.mode = TaskMode::Participant;
    let mut task = Driver::new(input);
    for number in 0..50 {
        task.say(&message(&format!("m{number}")));
        task.intake();
    }
    assert!(task.state().fresh.is_empty());
}

#[test]
fn an_artifact_never_takes_the_place_of_an_answer() {
    let publish = |id: &str, name: &str| {
        let request =
            IntrinsicRequest::PublishArtifact { name: name.to_owned(), description: None, parts: vec![] };
        call(id, CallAction::Intrinsic(request))
    };
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![publish("a", "Answer 2"), publish("b", "报告 2"), publish("c", "报告 3")]));
    assert!(task.took().starts_with("artifact artifact-answer-2, artifact 报告-2, artifact 报告-3, "));
}

#[test]
fn a_question_to_somebody_who_leaves_is_withdrawn() {
    let mut input = start(Lifecycle::Conversation);
    let person = |id: &str, role| Participant {
        id: id.into(),
        kind: ParticipantKind::Human,
        role,
        display_name: String::new(),
    };
    input.extension.participants.push(person("root", ParticipantRole::Admin));
    let mut task = Driver::new(input);
    task.say(&message("m1"));
    task.intake();
    task.model(answer("", vec![ask("q", "Ship it?")]));
    task.say(&message("m2"));
    task.took();
    let participants = Some(vec![person("root", ParticipantRole::Admin)]);
    task.intake_with(|_| patch(TaskPatch { participants: participants.clone(), ..TaskPatch::default() }));
    assert_eq!(task.took(), "history, WORKING, run invoke_model");
    assert!(task.state().pending_help.is_none());
}

#[test]
fn plans_and_changes_are_bounded() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let step = |n: usize| NewStep { name: format!("s{n}"), description: String::new(), depends_on: vec![] };
    let plan = IntrinsicRequest::CreatePlan { steps: (0..40).map(step).collect() };
    let mut calls = vec![call("plan", CallAction::Intrinsic(plan))];
    for n in 0..40 {
        let request = IntrinsicRequest::CompleteStep { step: format!("s{n}"), output: "x".repeat(2_000) };
        calls.push(call(&format!("done{n}"), CallAction::Intrinsic(request)));
    }
    task.model(answer("", calls));
    assert_eq!(own_text(&task.state(), "done0"), "step s0 done");
    assert!(own_text(&task.state(), "done39").starts_with("[tool.invalid_arguments] the plan would have"));
    let plan = serde_json::to_vec(&task.state().extension.plan).unwrap();
    assert!(plan.len() <= limits::PLAN_BYTES_MAX);

    task.say(&message("m2"));
    task.model(answer("done", vec![]));
    task.took();
    let large = || TaskPatch { description: Some("ü".repeat(30_000)), ..TaskPatch::default() };
    task.intake_with(|_| patch(large()));
    assert!(task.took().contains("task not changed: it would have"));
    assert!(task.state().extension.description.is_empty());
}

#[test]
fn the_turn_limit_counts_from_answer_to_answer() {
    let settings = TaskSettings { max_turns: 2, ..TaskSettings::default() };
    let mut task = Driver::with_settings(start(Lifecycle::Conversation), settings);
    task.say(&message("m1"));
    task.intake();
    for turn in 0..5 {
        task.model(answer("", vec![refused("x")]));
        task.say(&message(&format!("n{turn}")));
        task.model(answer("hi", vec![]));
        task.intake_with(|_| accepted());
    }
    assert_eq!(task.phase(), "modeling");
    assert_eq!(task.state().last_answer, Some(Content::Inline("hi".to_owned())));
}

#[test]
fn results_of_a_round_that_is_cut_short_are_kept() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("a", true), reject("r")]));
    let id = task.only("invoke_tool");
    task.took();
    task.complete(&id, tool_result("x"));
    assert_eq!(task.took(), "WORKING [a:succeeded r:succeeded], REJECTED \"not mine\", close");
}
