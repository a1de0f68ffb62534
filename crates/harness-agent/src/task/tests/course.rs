//! The ordinary course of tasks.

use harness_model::{Lifecycle, StepState, TaskMode, codes};
use harness_ports::FailureKind;

use super::driver::{
    Driver, answer, ask, call, command, failure, message, not_welcome, own_text, refused, start, tool,
    tool_result,
};
use crate::{
    CallAction, IntrinsicRequest, ModelOutcome, ModelPrice, RetryPolicy, SlashCommand, TaskSettings,
};

#[test]
fn a_delegated_task_completes_with_its_answer() {
    let mut task = Driver::new(start(Lifecycle::Delegated));
    assert_eq!(task.took(), "CREATED");
    task.say(&message("m1"));
    assert_eq!(task.took(), "run intake");
    task.intake();
    assert_eq!(task.took(), "history, WORKING, run invoke_model");
    task.model(answer("done", vec![]));
    assert_eq!(task.took(), "artifact answer-1, COMPLETED \"done\", close");
}

#[test]
fn a_conversation_parks_and_resumes() {
    let mut task = Driver::modeling(Lifecycle::Conversation);
    task.model(answer("hello", vec![]));
    assert_eq!(task.took(), "artifact answer-1, INPUT_REQUIRED/awaiting-next-message \"hello\"");
    task.say(&message("m2"));
    task.intake();
    assert_eq!(task.took(), "run intake, history, WORKING, run invoke_model");
    let id = task.only("invoke_model");
    assert_eq!(task.input(&id)["turn"], 2);
    assert_eq!(task.input(&id)["manifest"]["bytes"], 8);
    assert_eq!(task.input(&id)["measured"]["input_tokens"], 100);
}

#[test]
fn a_start_without_a_message_parks_a_conversation_and_runs_a_delegation() {
    let mut conversation = start(Lifecycle::Conversation);
    conversation.awaits_message = true;
    assert_eq!(Driver::new(conversation).took(), "CREATED, INPUT_REQUIRED/awaiting-next-message");
    let mut delegated = start(Lifecycle::Delegated);
    delegated.awaits_message = true;
    assert_eq!(Driver::new(delegated).took(), "CREATED, WORKING, run invoke_model");
}

#[test]
fn calls_that_may_be_repeated_run_together_and_others_one_by_one() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("a", true), tool("b", true)]));
    assert_eq!(task.took(), "run invoke_tool, run invoke_tool, WORKING [a:running b:running]");
    let ids = task.activities("invoke_tool");
    task.complete(&ids[1], tool_result("second"));
    assert_eq!(task.took(), "WORKING [a:running b:succeeded]");
    task.complete(&ids[0], tool_result("first"));
    assert_eq!(task.took(), "WORKING [a:succeeded b:succeeded], run invoke_model");
    let order: Vec<u64> = task.state().fresh.iter().map(|item| item.chars).collect();
    assert_eq!(order, [5, 5, 6], "model answer, then results in the order of the calls");

    task.model(answer("", vec![tool("c", true), tool("d", false)]));
    assert_eq!(task.took(), "run invoke_tool, WORKING [c:running]");
    let id = task.only("invoke_tool");
    task.complete(&id, tool_result("c"));
    assert_eq!(task.took(), "run invoke_tool (once), WORKING [c:succeeded d:running]");
    let id = task.only("invoke_tool");
    assert_eq!(task.input(&id)["idempotency_key"], "t1/2/1");
}

#[test]
fn refused_calls_and_intrinsics_need_no_activity() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let step = |name: &str| harness_model::NewStep {
        name: name.to_owned(),
        description: String::new(),
        depends_on: vec![],
    };
    let plan = IntrinsicRequest::CreatePlan { steps: vec![step("Look up"), step("Ship")] };
    let done = IntrinsicRequest::CompleteStep { step: "Look up".to_owned(), output: "found".to_owned() };
    let calls =
        vec![call("p", CallAction::Intrinsic(plan)), call("d", CallAction::Intrinsic(done)), refused("x")];
    task.model(answer("thinking", calls));
    assert_eq!(
        task.took(),
        "artifact answer-1, WORKING [p:succeeded d:succeeded x:failed], run invoke_model"
    );
    let data = task.state();
    assert_eq!(data.extension.plan.as_ref().unwrap().steps[0].state, StepState::Done);
    assert_eq!(own_text(&data, "p"), "plan attached with 2 steps");
    assert_eq!(own_text(&data, "x"), "[tool.not_found] no such tool");
}

#[test]
fn a_question_waits_for_the_asked_participant() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![ask("q", "Ship it?")]));
    assert_eq!(task.took(), "WORKING [q:succeeded], INPUT_REQUIRED \"Ship it?\"");
    assert_eq!(task.state().status.help.unwrap().participant_id.as_str(), "ada");
    // Somebody else speaks: the model reads it, and the question stays open.
    task.say(&message("m2"));
    task.intake();
    task.took();
    task.model(answer("noted", vec![]));
    assert_eq!(task.took(), "artifact answer-2, WORKING \"noted\", INPUT_REQUIRED \"Ship it?\"");
}

#[test]
fn nobody_outside_can_be_asked() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let request = IntrinsicRequest::AskParticipant {
        participant_id: "eve".into(),
        question: "?".into(),
        options: vec![],
    };
    task.model(answer("", vec![call("q", CallAction::Intrinsic(request))]));
    assert_eq!(task.took(), "WORKING [q:failed], run invoke_model");
    assert_eq!(
        own_text(&task.state(), "q"),
        "[channel.not_a_member] \"eve\" cannot be asked here; you can ask: ada"
    );
}

#[test]
fn a_task_is_rejected_only_before_it_has_acted() {
    let reject =
        || call("r", CallAction::Intrinsic(IntrinsicRequest::RejectTask { reason: "not mine".into() }));
    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![reject()]));
    assert_eq!(task.took(), "WORKING [r:succeeded], REJECTED \"not mine\", close");

    let mut task = Driver::modeling(Lifecycle::Delegated);
    task.model(answer("", vec![tool("a", false)]));
    let id = task.only("invoke_tool");
    task.complete(&id, tool_result("done"));
    task.took();
    task.model(answer("", vec![reject()]));
    assert_eq!(task.took(), "WORKING [r:failed], run invoke_model");
}

#[test]
fn messages_that_are_refused_change_nothing() {
    let mut task = Driver::modeling(Lifecycle::Conversation);
    task.model(answer("", vec![ask("q", "Ship it?")]));
    task.took();
    task.say(&message("m2"));
    task.intake_with(|_| not_welcome());
    assert_eq!(task.took(), "run intake, INPUT_REQUIRED \"message not accepted: not a participant\"");
    assert!(task.state().pending_help.is_some());

    let mut first = Driver::new(start(Lifecycle::Conversation));
    first.say(&message("m1"));
    first.took();
    first.intake_with(|_| not_welcome());
    assert_eq!(first.took(), "REJECTED \"message not accepted: not a participant\", close");
}

#[test]
fn commands_are_handled_without_the_model() {
    let parked = || {
        let mut task = Driver::modeling(Lifecycle::Conversation);
        task.model(answer("hello", vec![]));
        task.say(&message("m2"));
        task.took();
        task
    };
    let mut task = parked();
    task.intake_with(|_| command(SlashCommand::Complete));
    assert_eq!(task.took(), "history, COMPLETED \"hello\", close");
    let mut task = parked();
    task.intake_with(|_| command(SlashCommand::Cancel));
    assert_eq!(task.took(), "history, CANCELED \"canceled by ada\", close");
    let mut task = parked();
    task.intake_with(|_| command(SlashCommand::Unknown("nope".to_owned())));
    let took = task.took();
    assert!(took.starts_with("history, INPUT_REQUIRED/awaiting-next-message \"no command /nope; "), "{took}");
}

#[test]
fn the_turn_limit_ends_a_task_that_runs_in_circles() {
    let settings = TaskSettings { max_turns: 2, ..TaskSettings::default() };
    let mut task = Driver::with_settings(start(Lifecycle::Delegated), settings);
    task.say(&message("m1"));
    task.intake();
    for _ in 0..2 {
        task.took();
        task.model(answer("", vec![refused("x")]));
    }
    assert_eq!(task.took(), "WORKING [x:failed], FAILED \"turn limit reached\", close");
}

#[test]
fn failures_are_retried_as_the_policy_says() {
    let mut settings = TaskSettings::default();
    settings.retries.default = RetryPolicy { maximum_attempts: 2, ..RetryPolicy::default() };
    let mut task = Driver::with_settings(start(Lifecycle::Delegated), settings);
    task.say(&message("m1"));
    task.intake();
    task.took();
    for _ in 0..1 {
        let id = task.only("invoke_model");
        task.fail(&id, failure(FailureKind::Retryable { after_ms: None }));
        assert_eq!(task.took(), "start timer");
        task.fire();
        assert_eq!(task.took(), "run invoke_model");
    }
    let id = task.only("invoke_model");
    task.fail(&id, failure(FailureKind::TimedOut));
    assert_eq!(
        task.took(),
        "FAILED \"[provider.retryable] invoke_model failed after 2 attempt(s): no luck\", close"
    );
}

#[test]
fn an_empty_answer_is_tried_once_more_only() {
    let mut task = Driver::modeling(Lifecycle::Delegated);
    let empty = || super::driver::coded(FailureKind::Retryable { after_ms: None }, codes::PROVIDER_EMPTY);
    let id = task.only("invoke_model");
    task.fail(&id, empty());
    task.fire();
    task.took();
    let id = task.only("invoke_model");
    task.fail(&id, empty());
    assert!(task.took().starts_with("FAILED \"[provider.empty]"));
}

#[test]
fn a_context_over_budget_is_refused_loudly() {
    let mut task = Driver::modeling(Lifecycle::Conversation);
    task.model(ModelOutcome::OverBudget { estimate_tokens: 13_000, budget_tokens: 12_000 });
    let took = task.took();
    assert!(
        took.starts_with("FAILED \"[context.over_budget] the conversation needs about 13000 tokens"),
        "{took}"
    );
}

#[test]
fn a_participants_task_needs_no_model_and_ends_with_the_assignees_words() {
    let mut input = start(Lifecycle::Conversation);
    input.mode = TaskMode::Participant;
    input.extension.participants[0].role = harness_model::ParticipantRole::Assignee;
    let mut task = Driver::new(input);
    assert_eq!(task.took(), "CREATED, INPUT_REQUIRED \"g\"");
    task.say(&message("m1"));
    task.intake();
    assert_eq!(task.took(), "run intake, history, COMPLETED, close");
}

#[test]
fn a_token_budget_ends_a_task_before_another_model_call() {
    let settings = TaskSettings { token_budget: Some(150), ..TaskSettings::default() };
    let mut task = Driver::with_settings(start(Lifecycle::Delegated), settings);
    task.say(&message("m1"));
    task.intake();
    for _ in 0..2 {
        task.took();
        task.model(answer("", vec![refused("x")]));
    }
    assert_eq!(
        task.took(),
        "WORKING [x:failed], FAILED \"[budget.exhausted] the task used 220 tokens and may use 150 (budget.task_tokens)\", close"
    );
}

#[test]
fn usage_and_cost_add_up_over_turns() {
    let mut settings = TaskSettings::default();
    let price = ModelPrice { input: 1_000_000, cached: 0, output: 2_000_000 };
    settings.prices.insert("scripted:test".to_owned(), price);
    let mut task = Driver::with_settings(start(Lifecycle::Delegated), settings);
    task.say(&message("m1"));
    task.intake();
    task.model(answer("", vec![refused("x")]));
    task.model(answer("done", vec![]));
    let usage = task.state().usage;
    assert_eq!((usage.calls, usage.input_tokens, usage.output_tokens), (2, 200, 20));
    assert_eq!(usage.cost_micro_usd, Some(2 * (100 + 20)));
}
