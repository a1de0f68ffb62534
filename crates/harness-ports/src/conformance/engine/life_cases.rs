//! Replay, poison, drain, and what stays in memory.

use std::time::Duration;

use futures::{StreamExt, future::join_all, stream};
use harness_model::WorkflowId;

use super::{
    activities::{DEAF, ECHO, GATE},
    lab::EngineLab,
    script::{Op, ScriptDefinition, run, run_once, say, timer},
    stage::{Stage, eventually, in_time},
};
use crate::{DeleteWhen, Delivered, EngineError, HistoryEvent, Write, WriteBatch};

/// A workflow goes on alike after a restart: from its events alone, and from a snapshot and the events after it.
pub async fn a_snapshot_and_its_tail_equal_the_whole_history(lab: &dyn EngineLab) {
    let mut transcripts = Vec::new();
    for (id, checkpoints, restarts) in
        [("plain", false, false), ("replayed", false, true), ("restored", true, true)]
    {
        let mut stage = Stage::open(lab).await;
        for turn in 0..3 {
            let mut ops = vec![
                run(&format!("gate{turn}"), GATE, vec![say("through"), Op::SayState]),
                timer(&format!("timer{turn}"), 3_600_000, vec![]),
                Op::SayState,
            ];
            if checkpoints && turn == 1 {
                ops.push(Op::Checkpoint);
            }
            stage.accept(id, &format!("turn {turn}"), &ops).await;
        }
        if restarts {
            stage = stage.kill_and_reopen().await;
        }
        for turn in 0..3 {
            let gate = format!("gate{turn}");
            stage.activities.open_gate(&gate);
            stage.wait_for(id, &format!(r#"completed {gate} {{"of":"{gate}"}}"#)).await;
        }
        stage.accept(id, "last", &[Op::SayState]).await;
        let stored = stage.life.store().workflow(&id.into()).await.unwrap().unwrap();
        assert_eq!(stored.snapshot.is_some(), checkpoints, "{id}");
        transcripts.push(stage.transcript(id).await);
        in_time("the process is dead", stage.life.kill()).await;
    }
    assert_eq!(transcripts[0], transcripts[1]);
    assert_eq!(transcripts[0], transcripts[2]);

    // A build that reads no snapshots still reads every history that has none.
    let stage = Stage::open(lab).await;
    let stage = stage.kill_and_reopen_with(ScriptDefinition { forgetful: true }).await;
    stage.accept("replayed", "old history", &[Op::SayState]).await;
    let refused = stage.order("restored", "new build", None, &[]).await;
    assert!(matches!(refused, Err(EngineError::SetAside { .. })), "{refused:?}");
}

/// A journal as an earlier build wrote it: recorded data is never reinterpreted.
const OLD_JOURNAL: &str = r#"[
    {"at": 1700000000000, "event": "started.v1", "input": {"task": "old", "prepared": true}},
    {"at": 1700000000001, "event": "signaled.v1", "name": "do.v1", "dedupe_key": "k", "payload": {"label": "go", "ops": [
        {"Run": {"id": "a", "name": "echo.v1", "on_crash": "rerun", "limit_ms": 60000, "then": []}},
        {"Run": {"id": "b", "name": "echo.v1", "on_crash": "rerun", "limit_ms": 60000, "then": []}},
        {"Timer": {"id": "t", "ms": 1, "then": [{"Say": "after the timer"}]}}]}},
    {"at": 1700000000002, "event": "activity_completed.v1", "activity_id": "a", "result": {"of": "a"}},
    {"at": 1700000000003, "event": "activity_failed.v1", "activity_id": "b", "failure":
        {"code": "harness.error", "message": "overloaded", "kind": {"retryable": {"after_ms": 5}}}},
    {"at": 1700000000004, "event": "timer_fired.v1", "timer_id": "t"},
    {"at": 1700000000005, "event": "signaled.v1", "name": "do.v1", "payload": {"label": "more", "ops": [
        {"Run": {"id": "c", "name": "echo.v1", "on_crash": "report_unknown", "limit_ms": 60000,
                 "then": ["SayState", "Close"]}}]}}
]"#;

/// The activity that was announced with the last event of it.
const OLD_ANNOUNCEMENT: &str = r#"{"activity_id": "c", "name": "echo.v1", "input": {"of": "c"},
    "options": {"start_to_close": 60000, "on_crash": "report_unknown"}}"#;

/// A history of an earlier build goes on where it was.
pub async fn an_old_journal_is_replayed(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let workflow_id = WorkflowId::new("old");
    let journal: Vec<HistoryEvent> = serde_json::from_str(OLD_JOURNAL).unwrap();
    let at = journal[0].at;
    let mut writes = vec![Write::CreateWorkflow {
        workflow_id: workflow_id.clone(),
        workflow_type: "script.v1".to_owned(),
    }];
    writes.extend((0..).zip(journal).map(|(seq, event)| Write::AppendJournal {
        workflow_id: workflow_id.clone(),
        seq,
        event,
    }));
    let task = serde_json::from_str(OLD_ANNOUNCEMENT).unwrap();
    writes.push(Write::AnnounceActivity { workflow_id, task });
    stage.life.store().commit(WriteBatch::new(at, writes)).await.unwrap();

    let stage = stage.kill_and_reopen().await;
    stage.wait_for("old", "event 7 then []").await;
    // Nobody had begun it: an engine that knows runs it, another one does not dare to.
    let waits = stage.engine().capabilities().unbegun_waits;
    let end = if waits { r#"completed c {"of":"c"}"# } else { "failed c outcome_unknown" };
    stage.check("old", &[end, "event 7 then []"]).await;
    assert_eq!(stage.order("old", "late", None, &[]).await.unwrap(), Delivered::Closed);
}

/// A workflow that cannot go on, or panics, is out of service with a clear error, also for its timers and after a
/// restart that does not help; what it had recorded stays, and nobody else notices.
pub async fn a_broken_workflow_is_set_aside_alone(lab: &dyn EngineLab) {
    // Long enough for everything that comes before it.
    const SOON_MS: u64 = 800;
    let stage = Stage::open(lab).await;
    for (id, poison) in [("illegal", Op::Break), ("panics", Op::Panic)] {
        stage.accept(id, "go", &[timer("soon", SOON_MS, vec![]), run("gate", GATE, vec![])]).await;
        stage.activities.wait("the gate runs", |seen| !seen.of("gate").is_empty()).await;
        for label in ["poison", "after it"] {
            let refused = stage.order(id, label, None, std::slice::from_ref(&poison)).await;
            let Err(EngineError::SetAside { workflow_id, .. }) = refused else { panic!("{id}: {refused:?}") };
            assert_eq!(workflow_id.as_str(), id);
        }
        stage.check(id, &["started", "signal go"]).await;
    }
    stage.accept("late", "go", &[run("last", GATE, vec![Op::Break])]).await;
    stage.activities.open_gate("last");
    in_time("it is set aside", async { while stage.order("late", "well?", None, &[]).await.is_ok() {} })
        .await;
    let stored = stage.life.store().workflow(&"late".into()).await.unwrap().unwrap();
    assert_eq!(stored.activities.len(), 1, "an end that is not recorded leaves the activity announced");

    // Due after the timers of the broken ones, which must not be in its way.
    stage
        .accept("well", "go", &[timer("later", 2 * SOON_MS, vec![run("echo", ECHO, vec![say("fine")])])])
        .await;
    stage.wait_for("well", "fine").await;
    assert!(stage.life.workflows_in_memory() <= 1, "{}", stage.life.workflows_in_memory());

    let stage = stage.kill_and_reopen().await;
    stage.wait_for("illegal", "fired soon").await;
    stage.activities.open_gate("gate");
    stage.wait_for("panics", r#"completed gate {"of":"gate"}"#).await;
}

/// A drain lets activities end and records that; those that take too long are stopped without a word in the history,
/// exactly as if the process had been killed.
pub async fn a_drain_records_what_ends_and_cancels_nothing(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    stage.accept("w", "go", &[run_once("ends", GATE, vec![say("ended")])]).await;
    stage.activities.wait_started("ends", 1).await;
    let (drained, ()) = in_time("a drain", async {
        tokio::join!(stage.life.drain(Duration::from_secs(20)), async {
            let refused = stage.order("w", "too late", None, &[]).await;
            assert!(matches!(refused, Err(EngineError::Stopping)), "{refused:?}");
            stage.activities.open_gate("ends");
        })
    })
    .await;
    assert!(drained);
    stage.check("w", &["started", "signal go", r#"completed ends {"of":"ends"}"#, "ended"]).await;

    let stage = stage.kill_and_reopen().await;
    let go = [
        run("again", GATE, vec![say("done")]),
        run_once("once", GATE, vec![]),
        run_once("deaf", DEAF, vec![]),
        timer("short", 1, vec![]),
    ];
    stage.accept("v", "go", &go).await;
    stage.wait_for("v", "fired short").await;
    join_all(["again", "once", "deaf"].map(|id| stage.activities.wait_started(id, 1))).await;
    let drained = in_time("a drain", stage.life.drain(Duration::from_millis(20))).await;
    assert!(!drained);
    assert_eq!(stage.activities.seen().stopped.len(), 2, "the ones that listen were asked to stop");
    stage.check("v", &["started", "signal go", "fired short"]).await;
    assert_eq!(stage.life.workflows_in_memory(), 0);

    let stage = stage.kill_and_reopen().await;
    stage.activities.wait_started("again", 2).await;
    stage.activities.open_gate("again");
    stage.wait_for("v", "done").await;
    let mut ends = stage.transcript("v").await.split_off(3);
    ends.sort();
    let expected = [
        r#"completed again {"of":"again"}"#,
        "done",
        "failed deaf outcome_unknown",
        "failed once outcome_unknown",
    ];
    assert_eq!(ends, expected);
}

/// While it drains, an engine begins nothing that it can begin after the restart, so that it gets done.
pub async fn a_drain_begins_only_what_could_not_begin_later(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let then = vec![run("later", ECHO, vec![say("done")]), run_once("now", ECHO, vec![])];
    stage.accept("w", "go", &[run("gate", GATE, then)]).await;
    stage.activities.wait_started("gate", 1).await;
    let (drained, ()) = in_time("a drain", async {
        tokio::join!(stage.life.drain(Duration::from_secs(20)), async {
            stage.activities.open_gate("gate");
        })
    })
    .await;
    assert!(drained);
    let ended = r#"completed now {"of":"now"}"#;
    let mut expected = vec!["started", "signal go", r#"completed gate {"of":"gate"}"#];
    if !stage.engine().capabilities().unbegun_waits {
        expected.push(ended);
    }
    stage.check("w", &expected).await;
    assert_eq!(stage.activities.seen().of("later").len(), 0);

    let stage = stage.kill_and_reopen().await;
    stage.wait_for("w", "done").await;
    stage.wait_for("w", ended).await;
    assert_eq!(stage.activities.seen().of("later").len(), 1);
    assert_eq!(stage.activities.seen().of("now").len(), 1);
}

/// Ten thousand workflows that wait for a message cost rows, not memory; each is there when it is needed.
pub async fn parked_workflows_do_not_stay_in_memory(lab: &dyn EngineLab) {
    const IN_MEMORY_MAX: usize = 500;
    let parked = lab.crowd(10_000);
    let stage = Stage::open(lab).await;
    let starts = stream::iter(0..parked).map(|number| {
        let stage = &stage;
        async move { stage.accept(&format!("w{number}"), "go", &[run("echo", ECHO, vec![])]).await }
    });
    starts.buffer_unordered(64).for_each(|()| async {}).await;
    eventually("the parked ones are gone", || stage.life.workflows_in_memory() <= IN_MEMORY_MAX).await;
    for number in [0, parked / 2, parked - 1] {
        let id = format!("w{number}");
        stage.wait_for(&id, r#"completed echo {"of":"echo"}"#).await;
        stage.accept(&id, "again", &[]).await;
        let expected = ["started", "signal go", r#"completed echo {"of":"echo"}"#, "signal again"];
        stage.check(&id, &expected).await;
    }
}

/// A workflow whose rows were deleted and that is forgotten comes back as a new one only, whatever it had under way.
pub async fn a_forgotten_workflow_leaves_nothing_behind(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    stage
        .accept("gone", "go", &[run("gate", GATE, vec![say("of the old one")]), run("deaf", DEAF, vec![])])
        .await;
    stage.activities.wait("both run", |seen| seen.started.len() == 2).await;
    stage.accept("gone", "end", &[Op::Close]).await;
    let gone = WorkflowId::new("gone");
    let write = Write::DeleteTask { task_id: (&gone).into(), when: DeleteWhen::Always };
    let now = stage.activities.seen().started[0].started_at;
    stage.life.store().commit(WriteBatch::new(now, vec![write])).await.unwrap();
    stage.engine().forget(&gone).await.unwrap();
    stage.engine().forget(&gone).await.unwrap();
    assert_eq!(stage.engine().outage(), None, "everything it needs is there");
    stage.activities.open_gate("gate");

    // Whoever hosts the old one in memory may still wait for an execution to stop.
    let again = [run("echo", ECHO, vec![say("new")])];
    let free =
        async { while stage.order("gone", "again", None, &again).await.unwrap() == Delivered::Closed {} };
    in_time("its id is free", free).await;
    stage.wait_for("gone", "new").await;
    stage.check("gone", &["started", "signal again", r#"completed echo {"of":"echo"}"#, "new"]).await;
}
