//! Death at every write, and stores that fail.

use std::time::Duration;

use futures::future::join_all;

use super::{
    activities::{ECHO, GATE},
    lab::{EngineLab, Trouble},
    script::{Op, run, run_once, say, timer},
    stage::{Stage, in_time},
};
use crate::Delivered;

/// Commits of the scenario are counted up to here; it has far fewer.
const COMMITS_MAX: u64 = 60;

/// A bit of everything, one step after another.
fn scenario(other: &str) -> Vec<Op> {
    let end = vec![say("end"), Op::Close];
    let tell = Op::Tell { to: other.to_owned(), key: None, label: "hello".to_owned() };
    let after_timer = vec![tell, run("third", ECHO, end)];
    let after_second = vec![Op::Checkpoint, timer("pause", 2, after_timer)];
    let after_first = vec![Op::SayState, run_once("second", ECHO, after_second)];
    vec![run("first", ECHO, after_first)]
}

/// Whatever commit a process dies before or after, the next one brings the workflow to the same end: every line once and
/// in order, activities that may be repeated at least once, the other one at most once and reported if nobody knows.
pub async fn every_crash_point_leads_to_the_same_end(lab: &dyn EngineLab) {
    let expected = play(lab, "calm", Trouble::None).await.0;
    assert_eq!(expected.last().map(String::as_str), Some("end"));
    for make in [Trouble::DieBefore as fn(u64) -> Trouble, Trouble::DieAfter] {
        let mut survived = 0;
        for commit in 1..COMMITS_MAX {
            let trouble = make(commit);
            let (transcript, died) = play(lab, &format!("{trouble:?}"), trouble).await;
            assert_eq!(transcript, expected, "{trouble:?}");
            if !died {
                break;
            }
            survived += 1;
        }
        assert!((6..COMMITS_MAX - 1).contains(&survived), "{survived} crash points");
    }
}

/// Plays the scenario to its end, across one death. Gives what was written, with the two possible ends of the activity
/// that runs once made equal, and whether the process died.
async fn play(lab: &dyn EngineLab, id: &str, trouble: Trouble) -> (Vec<String>, bool) {
    let other = format!("other of {id}");
    let mut stage = Stage::open_with(lab, trouble).await;
    let mut died = false;
    loop {
        let receipt = stage.order(id, "go", Some("first message"), &scenario(&other)).await;
        let finished = async {
            receipt.is_ok() && {
                stage.wait_for(id, "end").await;
                stage.wait_for(&other, "signal hello").await;
                // The notes that are left to write are crash points as well.
                stage.life.drain(Duration::from_secs(5)).await
            }
        };
        let dies = tokio::select! {
            biased;
            finished = finished => !finished,
            () = stage.life.died() => true,
        };
        if !dies {
            break;
        }
        assert!(!died, "{id}: the second life needs no third one: {receipt:?}");
        died = true;
        stage = stage.kill_and_reopen().await;
    }
    let transcript = stage.transcript(id).await;
    let seen = stage.activities.seen();
    let unknown = "failed second outcome_unknown";
    let runs = seen.of("second").len();
    let reported = transcript.iter().any(|line| line == unknown);
    assert!(runs == 1 || (reported && runs == 0), "{id}: ran {runs} times: {transcript:#?}");
    for repeatable in ["first", "third"] {
        assert!((1..=2).contains(&seen.of(repeatable).len()), "{id}: {repeatable}");
    }
    stage.check(&other, &["started", "signal hello"]).await;
    in_time("the process is dead", stage.life.kill()).await;
    let known = r#"completed second {"of":"second"}"#;
    let equal = |line: String| if line == unknown { known.to_owned() } else { line };
    (transcript.into_iter().map(equal).collect(), died)
}

/// A store that fails for a while makes callers wait or get an error; what was going on goes on after it.
pub async fn a_failing_store_delays_and_loses_nothing(lab: &dyn EngineLab) {
    let stage = Stage::open_with(lab, Trouble::Fail { first: 2, last: 5 }).await;
    stage.accept("w", "go", &[run("gate", GATE, vec![say("done")])]).await;
    stage.activities.open_gate("gate");
    stage.wait_for("w", "done").await;
    stage.check("w", &["started", "signal go", r#"completed gate {"of":"gate"}"#, "done"]).await;
    assert_eq!(stage.activities.seen().of("gate").len(), 1, "a failed commit does not run an activity again");
    in_time("the process is dead", stage.life.kill()).await;

    let stage = Stage::open_with(lab, Trouble::Fail { first: 1, last: 6 }).await;
    let refused = stage.order("v", "go", Some("k"), &[]).await;
    assert!(refused.is_err(), "{refused:?}");
    let retried = in_time("the store works again", async {
        loop {
            if let Ok(receipt) = stage.order("v", "go", Some("k"), &[]).await {
                return receipt;
            }
        }
    });
    assert_eq!(retried.await, Delivered::Accepted { cursor: None });
    stage.check("v", &["started", "signal go"]).await;
}

/// After a kill, what may be repeated runs again under a new run id, the rest is reported unknown and never repeated; a
/// signal that arrives before that waits its turn.
pub async fn an_announced_activity_is_rerun_or_reported_after_a_crash(lab: &dyn EngineLab) {
    let stage = Stage::open(lab).await;
    let go = [run("again", GATE, vec![say("ran again")]), run_once("once", GATE, vec![say("was reported")])];
    stage.accept("w", "go", &go).await;
    stage.activities.wait_started("again", 1).await;
    stage.activities.wait_started("once", 1).await;
    // Recovered before the one of this case, which is signalled before its turn.
    let crowd: Vec<_> = (0..lab.crowd(200)).map(|number| format!("crowd{number}")).collect();
    let wait = [run("other", GATE, vec![])];
    join_all(crowd.iter().map(|id| stage.accept(id, "go", &wait))).await;
    let stage = stage.kill_and_reopen().await;
    stage.accept("w", "after the restart", &[]).await;
    stage.activities.wait_started("again", 2).await;
    stage.activities.open_gate("again");
    stage.wait_for("w", "ran again").await;
    let ran_again = [r#"completed again {"of":"again"}"#, "ran again"];
    let reported = ["failed once outcome_unknown", "was reported"];
    let mut transcript = stage.transcript("w").await;
    if stage.engine().capabilities().losses_first {
        let expected =
            [&["started", "signal go"], &reported[..], &["signal after the restart"], &ran_again[..]];
        assert_eq!(transcript, expected.concat());
    } else {
        stage.wait_for("w", reported[1]).await;
        transcript = stage.transcript("w").await;
        for [end, consequence] in [ran_again, reported] {
            let position = transcript.iter().position(|line| line == end).unwrap();
            assert_eq!(transcript[position + 1], consequence, "{transcript:#?}");
        }
        assert_eq!(transcript.len(), 7, "{transcript:#?}");
    }
    let seen = stage.activities.seen();
    assert_eq!(seen.of("once").len(), 1);
    let runs = seen.of("again");
    assert_ne!(runs[0].run_id, runs[1].run_id);
    assert!(runs.iter().all(|run| run.workflow_id.as_str() == "w"));
    assert!(runs[0].started_at <= runs[1].started_at);
}
