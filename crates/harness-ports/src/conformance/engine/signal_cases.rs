//! Signals between workflows.

use harness_model::TraceParent;

use super::{
    activities::{ECHO, GATE},
    lab::{EngineLab, Trouble},
    script::{self, Op, run, say},
    stage::{Stage, in_time},
};
use crate::{Delivered, Delivery, EventKind};

fn tell(to: &str, label: &str) -> Op {
    Op::Tell { to: to.to_owned(), key: None, label: label.to_owned() }
}

/// A signal reaches an existing workflow, starts a missing one if it may, and is dropped otherwise.
pub async fn a_workflow_signals_another_one_and_a_new_one(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    stage.accept("old", "hello", &[]).await;
    stage.accept("closed", "bye", &[Op::Close]).await;
    let keyed = |label: &str| Op::Tell {
        to: "old".to_owned(),
        key: Some("one key".to_owned()),
        label: label.to_owned(),
    };
    let go = [
        keyed("by key"),
        tell("new", "welcome"),
        tell("closed", "too late"),
        Op::TellIfThere { to: "missing".to_owned(), label: "lost".to_owned() },
        // The last word of a workflow still arrives.
        Op::Close,
    ];
    stage.accept("w", "go", &go).await;
    stage.wait_for("old", "signal by key").await;
    stage.wait_for("new", "signal welcome").await;
    stage.accept("v", "go", &[keyed("by key again"), tell("self", "x"), tell("old", "last")]).await;
    stage.wait_for("old", "signal last").await;
    stage.accept("self", "y", &[tell("self", "to myself")]).await;
    stage.wait_for("self", "signal to myself").await;
    stage.check("old", &["started", "signal hello", "signal by key", "signal last"]).await;
    stage.check("new", &["started", "signal welcome"]).await;
    stage.check("closed", &["started", "signal bye"]).await;
    stage.check("missing", &[]).await;
}

/// The signal is on its way once its cause is durable, and arrives once, wherever the process dies.
pub async fn a_signal_without_a_key_arrives_once_across_crashes(lab: &dyn EngineLab) {
    // The cause, the arrival, and the note that it arrived are commits of their own; the fourth is beyond them.
    let points = (1..=4).flat_map(|commit| [Trouble::DieBefore(commit), Trouble::DieAfter(commit)]);
    for (number, trouble) in points.enumerate() {
        let (to, from) = (format!("to{number}"), format!("from{number}"));
        let go = [tell(&to, "hello"), say("told")];
        let stage = Stage::open_with(lab, trouble).await;
        let first = stage.order(&from, "go", Some("k"), &go).await;
        tokio::select! {
            () = stage.life.died() => {}
            () = stage.wait_for(&to, "signal hello") => {}
        }
        let stage = stage.kill_and_reopen().await;
        let again = stage.order(&from, "go", Some("k"), &go).await;
        assert!(first.is_err() || matches!(again, Ok(Delivered::Duplicate { .. })), "{first:?} {again:?}");
        stage.wait_for(&to, "signal hello").await;
        // Another round trip, so that a second arrival has its chance.
        stage.accept(&from, "again", &[run("echo", ECHO, vec![tell(&to, "second")])]).await;
        stage.wait_for(&to, "signal second").await;
        stage.check(&to, &["started", "signal hello", "signal second"]).await;
        in_time("the process is dead", stage.life.kill()).await;
    }
}

/// What a signal leads to carries on where in a trace it came from: activities, what follows from their ends, and other
/// workflows, also across a crash. Another signal brings its own place, or none.
pub async fn a_trace_reaches_what_follows_from_a_signal(lab: &dyn EngineLab) {
    let place = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let stage = Stage::open(lab).await;
    let other = run("untraced", ECHO, vec![say("other")]);
    let then = vec![run("second", ECHO, vec![tell("there", "hello"), say("end")])];
    let mut signal = script::signal("go", None, &[run("first", GATE, then)]);
    signal.trace.clone_from(&place);
    let start = Some(script::start("w"));
    let delivery = Delivery { workflow_id: "w".into(), start, signal: Some(signal), blocks: Vec::new() };
    let receipt = stage.engine().deliver(delivery).await;
    assert!(matches!(receipt, Ok(Delivered::Accepted { .. })), "{receipt:?}");
    stage.activities.wait_started("first", 1).await;
    stage.accept("w", "no trace", &[other]).await;
    stage.wait_for("w", "other").await;

    let stage = stage.kill_and_reopen().await;
    stage.activities.open_gate("first");
    stage.wait_for("w", "end").await;
    stage.wait_for("there", "signal hello").await;
    let seen = stage.activities.seen();
    for (activity, expected) in [("first", &place), ("second", &place), ("untraced", &None)] {
        let traces = seen.of(activity).into_iter().map(|run| &run.trace);
        assert!(
            traces.clone().count() > 0 && traces.clone().all(|trace| trace == expected),
            "{activity}: {seen:?}"
        );
    }
    let there = stage.life.store().workflow(&"there".into()).await.unwrap().unwrap();
    let carried = there.tail.iter().filter_map(|(_, event)| {
        let EventKind::Signaled(signal) = &event.kind else { return None };
        Some(signal.trace.clone())
    });
    assert_eq!(carried.collect::<Vec<_>>(), [place]);
}
