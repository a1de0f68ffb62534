//! How activities end.

use std::collections::BTreeSet;

use super::{
    activities::{DEAF, ECHO, FAIL, FLOOD, GATE, PANIC},
    lab::EngineLab,
    script::{Op, run, run_once, say},
    stage::Stage,
};
use crate::OnCrash;

/// Every end reaches the workflow once, and none of them hurts the engine.
pub async fn an_activity_ends_with_a_result_a_failure_a_time_out_or_a_panic(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let deaf = Op::Run {
        id: "slow".to_owned(),
        name: DEAF.to_owned(),
        on_crash: OnCrash::Rerun,
        limit_ms: 20,
        then: vec![say("after the time-out")],
    };
    let after_flood = vec![deaf];
    let after_panic = vec![run("flood", FLOOD, after_flood)];
    let after_failure = vec![run("panic", PANIC, after_panic)];
    let after_result = vec![run_once("bad", FAIL, after_failure)];
    stage.accept("w", "go", &[run("good", ECHO, after_result)]).await;
    stage.wait_for("w", "after the time-out").await;
    let expected = [
        "started",
        "signal go",
        r#"completed good {"of":"good"}"#,
        "failed bad fatal",
        "failed panic fatal",
        "failed flood fatal",
        "failed slow timed_out",
        "after the time-out",
    ];
    stage.check("w", &expected).await;
    let runs: BTreeSet<_> = stage.activities.seen().started.into_iter().map(|run| run.run_id).collect();
    assert_eq!(runs.len(), 5, "each execution has its own id");
}

/// Cancelling stops a running activity; its end is not delivered, whether it comes by itself or not. Cancelling again,
/// or an activity that has ended or never was, changes nothing.
pub async fn a_canceled_activity_is_stopped_and_never_heard_of_again(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let cancel = Op::CancelRun("gate".to_owned());
    stage.accept("w", "go", &[run("gate", GATE, vec![say("unreachable")])]).await;
    stage.activities.wait_started("gate", 1).await;
    stage.accept("w", "stop", std::slice::from_ref(&cancel)).await;
    stage.activities.wait("the gate is stopped", |seen| seen.stopped.len() == 1).await;
    stage.accept("w", "stop again", &[cancel, Op::CancelRun("never".to_owned())]).await;

    let at_once = [run("brief", ECHO, vec![say("unreachable")]), Op::CancelRun("brief".to_owned())];
    stage.accept("w", "start and stop", &at_once).await;
    stage.accept("w", "more", &[run("last", ECHO, vec![say("done")])]).await;
    stage.wait_for("w", "done").await;
    stage.accept("w", "stop what has ended", &[Op::CancelRun("last".to_owned())]).await;
    let stage = stage.kill_and_reopen().await;
    stage.accept("w", "after the restart", &[]).await;
    let expected = [
        "started",
        "signal go",
        "signal stop",
        "signal stop again",
        "signal start and stop",
        "signal more",
        r#"completed last {"of":"last"}"#,
        "done",
        "signal stop what has ended",
        "signal after the restart",
    ];
    stage.check("w", &expected).await;
    let seen = stage.activities.seen();
    assert_eq!(seen.of("gate").len(), 1, "a canceled activity is not run again");
    assert_eq!(seen.of("brief").len(), 0, "an activity that is canceled at once is never begun");
}

/// The activities of a workflow end with it.
pub async fn closing_stops_what_runs(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    stage.accept("w", "go", &[run("one", GATE, vec![]), run_once("two", GATE, vec![])]).await;
    stage.activities.wait_started("one", 1).await;
    stage.activities.wait_started("two", 1).await;
    stage.accept("w", "end", &[Op::Close]).await;
    stage.activities.wait("both are stopped", |seen| seen.stopped.len() == 2).await;
    let stage = stage.kill_and_reopen().await;
    stage.check("w", &["started", "signal go", "signal end"]).await;
    let announced = stage.life.store().workflows_with_activities(None, 10).await.unwrap();
    assert!(announced.is_empty(), "{announced:?}");
}
