//! Timers.

use futures::future::join_all;
use harness_model::WorkflowId;

use super::{
    lab::EngineLab,
    script::{Op, ScriptDefinition, say, timer},
    stage::Stage,
};

/// Timers fire in the order they are due, whatever the order they were started in, and none before its time.
pub async fn timers_fire_in_order_and_never_early(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let last = timer("late", 90, vec![say("all")]);
    stage.accept("w", "go", &[last, timer("early", 30, vec![]), timer("middle", 60, vec![])]).await;
    stage.accept("v", "go", &[timer("now", 0, vec![timer("next", 1, vec![say("all")])])]).await;
    stage.wait_for("w", "all").await;
    stage.wait_for("v", "all").await;
    stage.check("w", &["started", "signal go", "fired early", "fired middle", "fired late", "all"]).await;
    stage.check("v", &["started", "signal go", "fired now", "fired next", "all"]).await;

    let log = stage.life.store().log(&"w".into(), None, 10).await.unwrap();
    for (position, wait_ms) in [(2, 30), (3, 60), (4, 90)] {
        let waited = log[position].at.as_millis() - log[1].at.as_millis();
        assert!(waited >= wait_ms, "a timer of {wait_ms} ms fired after {waited} ms");
    }
}

/// A canceled timer never fires; one that is started again fires once, at its new time.
pub async fn canceled_and_restarted_timers_do_not_fire_twice(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let hour = 3_600_000;
    let go = [
        timer("never", 20, vec![]),
        timer("moved", 20, vec![]),
        timer("sooner", hour, vec![say("moved up")]),
        Op::CancelTimer("never".to_owned()),
        Op::CancelTimer("unknown".to_owned()),
        timer("moved", 60, vec![say("moved back")]),
        timer("sooner", 1, vec![say("moved up")]),
    ];
    stage.accept("w", "go", &go).await;
    stage.wait_for("w", "moved back").await;
    let expected = ["started", "signal go", "fired sooner", "moved up", "fired moved", "moved back"];
    stage.check("w", &expected).await;

    // The first one's consequences take the second one away, although both are due at once.
    let both = [timer("a", 5, vec![Op::CancelTimer("b".to_owned()), say("alone")]), timer("b", 5, vec![])];
    stage.accept("v", "go", &both).await;
    stage.wait_for("v", "alone").await;
    stage.accept("v", "end", &[timer("rest", hour, vec![]), Op::Close]).await;
    stage.check("v", &["started", "signal go", "fired a", "alone", "signal end"]).await;
    let left = stage.life.store().timers(&WorkflowId::new("w")).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// Timers that came due while no process ran fire soon after the start, in order and once.
pub async fn a_timer_that_was_missed_fires_after_the_restart(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    // Due before the process can take them: it is killed right after the receipt.
    let pair = [timer("second", 2, vec![say("all")]), timer("first", 1, vec![])];
    stage.accept("w", "go", &pair).await;
    let stage = stage.kill_and_reopen().await;
    stage.wait_for("w", "all").await;
    let stage = stage.kill_and_reopen().await;
    stage.accept("w", "end", &[]).await;
    stage.check("w", &["started", "signal go", "fired first", "fired second", "all", "signal end"]).await;
}

/// Many timers that are due at once fire once each.
pub async fn a_crowd_of_timers_fires_across_a_crash(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let go = [timer("one", 100, vec![]), timer("two", 101, vec![say("all")])];
    let ids: Vec<_> = (0..lab.crowd(150)).map(|number| format!("w{number}")).collect();
    join_all(ids.iter().map(|id| stage.accept(id, "go", &go))).await;
    let stage = stage.kill_and_reopen().await;
    for id in &ids {
        stage.wait_for(id, "all").await;
    }
    for id in &ids {
        stage.check(id, &["started", "signal go", "fired one", "fired two", "all"]).await;
    }
    let left = stage.life.store().next_timers(1).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// Timers that nobody can take, more than are looked at together, are not in the way of one that somebody can.
pub async fn timers_of_broken_workflows_hold_nobody_up(lab: &dyn EngineLab) {
    let broken = lab.crowd(150);
    let stage = Stage::open(lab).await;
    let go = [Op::Checkpoint, timer("stuck", 500, vec![])];
    let ids: Vec<_> = (0..broken).map(|number| format!("w{number}")).collect();
    join_all(ids.iter().map(|id| stage.accept(id, "go", &go))).await;
    let stage = stage.kill_and_reopen_with(ScriptDefinition { forgetful: true }).await;
    stage.accept("well", "go", &[timer("free", 500, vec![timer("next", 1, vec![say("fine")])])]).await;
    stage.wait_for("well", "fine").await;
    let left = stage.life.store().next_timers(broken + 1).await.unwrap();
    assert_eq!(left.len(), broken, "their timers are kept for a build that can take them");
}
