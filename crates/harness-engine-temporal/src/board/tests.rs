//! Reports and ends of jobs, and what follows.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn report(seq: u64, activities: &[&str], timers: &[(&str, i64)]) -> Report {
    let activity =
        |id: &&str| Announced { id: (*id).into(), kind: "kind.v1".to_owned(), limit_ms: 1_000, quick: false };
    let timer = |(id, due): &(&str, i64)| crate::protocol::Timer {
        id: (*id).into(),
        due: Timestamp::from_millis(1_000_000 + due),
    };
    Report {
        seq,
        activities: activities.iter().map(activity).collect(),
        timers: timers.iter().map(timer).collect(),
        ..Report::default()
    }
}

fn closed(seq: u64) -> Report {
    Report { closed: true, ..report(seq, &[], &[]) }
}

fn told(first: Report) -> Board {
    let mut board = Board::default();
    board.learn(first);
    board
}

fn begun(plan: &Plan) -> Vec<String> {
    plan.begin.iter().map(|(job, begin)| format!("{} {}", name(job), how(begin))).collect()
}

fn stopped(plan: &Plan) -> Vec<String> {
    plan.stop.iter().map(name).collect()
}

fn name(job: &Job) -> String {
    match job {
        Job::Run(id) => format!("run {id}"),
        Job::Send(id) => format!("send {id}"),
        Job::Sleep(id) => format!("sleep {id}"),
        Job::Lose(id) => format!("lose {id}"),
        Job::Fire => "fire".to_owned(),
        Job::Look => "look".to_owned(),
    }
}

fn how(begin: &Begin) -> String {
    match begin {
        Begin::Run(_, attempt) => format!("#{attempt}"),
        Begin::Order => "now".to_owned(),
        Begin::Fire(due) => format!("at {}", due.as_millis() - NOW.as_millis()),
        Begin::Wait(wait) => format!("after {} ms", wait.as_millis()),
    }
}

#[test]
fn it_looks_before_it_does_anything() {
    let mut board = Board::default();
    assert_eq!(begun(&board.plan(NOW)), ["look now"]);
    assert!(begun(&board.plan(NOW)).is_empty(), "once");
    board.ended(&Job::Look, End::Reported(report(3, &["a"], &[("t", 50)])));
    assert_eq!(begun(&board.plan(NOW)), ["run a #1", "sleep t after 50 ms"]);
}

#[test]
fn what_is_announced_runs_and_what_is_not_is_stopped() {
    let mut board = told(report(1, &["a", "b"], &[("t", 50), ("u", 60)]));
    assert_eq!(begun(&board.plan(NOW)).len(), 4);
    board.learn(report(2, &["b", "c"], &[("u", 60), ("v", 0)]));
    let plan = board.plan(NOW);
    assert_eq!(stopped(&plan), ["run a", "sleep t"]);
    assert_eq!(begun(&plan), ["run c #1", "fire at 0"]);
}

#[test]
fn old_news_changes_nothing() {
    let mut board = told(report(5, &["a"], &[]));
    board.plan(NOW);
    board.learn(report(4, &[], &[]));
    assert_eq!(board.plan(NOW), Plan::default());
}

#[test]
fn a_timer_that_is_moved_is_waited_for_anew() {
    let mut board = told(report(1, &[], &[("t", 50)]));
    board.plan(NOW);
    board.learn(report(2, &[], &[("t", 90)]));
    let plan = board.plan(NOW);
    assert_eq!(stopped(&plan), ["sleep t"]);
    assert_eq!(begun(&plan), ["sleep t after 90 ms"]);
    board.ended(&Job::Sleep("t".into()), End::Waited);
    assert_eq!(begun(&board.plan(NOW.plus(Duration::from_millis(90)))), ["fire at 90"]);
}

#[test]
fn a_lost_execution_is_recorded_before_another_one() {
    let mut board = told(report(1, &["a"], &[]));
    board.plan(NOW);
    board.ended(&Job::Run("a".into()), End::Failed);
    assert_eq!(begun(&board.plan(NOW)), ["lose a now"]);
    board.ended(&Job::Lose("a".into()), End::Reported(report(1, &["a"], &[])));
    assert_eq!(begun(&board.plan(NOW)), ["run a #2"], "the first loss costs no time");
    board.ended(&Job::Run("a".into()), End::Failed);
    board.plan(NOW);
    board.ended(&Job::Lose("a".into()), End::Reported(report(1, &["a"], &[])));
    assert_eq!(begun(&board.plan(NOW)), ["run a after 200 ms"]);
    board.ended(&Job::Run("a".into()), End::Waited);
    assert_eq!(begun(&board.plan(NOW)), ["run a #3"]);
}

#[test]
fn an_outcome_that_is_recorded_as_unknown_is_not_tried_again() {
    let mut board = told(report(1, &["a"], &[]));
    board.plan(NOW);
    board.ended(&Job::Run("a".into()), End::Failed);
    board.plan(NOW);
    board.ended(&Job::Lose("a".into()), End::Reported(report(2, &["b"], &[])));
    assert_eq!(begun(&board.plan(NOW)), ["run b #1"]);
}

#[test]
fn an_order_is_repeated_until_it_is_carried_out_more_and_more_slowly() {
    let mut board = told(report(1, &["a"], &[]));
    board.plan(NOW);
    board.ended(&Job::Run("a".into()), End::Failed);
    board.plan(NOW);
    let aside = Report { aside: Some("another build".to_owned()), ..Report::default() };
    let mut waits = Vec::new();
    for _ in 0..11 {
        board.ended(&Job::Lose("a".into()), End::Reported(aside.clone()));
        waits.extend(begun(&board.plan(NOW)));
        board.ended(&Job::Lose("a".into()), End::Waited);
        assert_eq!(begun(&board.plan(NOW)), ["lose a now"]);
    }
    assert_eq!(waits[..3], ["lose a after 200 ms", "lose a after 400 ms", "lose a after 800 ms"]);
    assert_eq!(waits[10], "lose a after 60000 ms");
}

#[test]
fn executions_of_an_earlier_only_process_are_lost() {
    let epoch = |report: Report, name: &str| Report { epoch: Some(name.to_owned()), ..report };
    let mut board = told(epoch(report(1, &["a", "b"], &[]), "first"));
    board.plan(NOW);
    board.learn(epoch(report(1, &["a"], &[]), "second"));
    let plan = board.plan(NOW);
    assert_eq!(stopped(&plan), ["run a", "run b"]);
    assert_eq!(begun(&plan), ["lose a now"]);
    board.ended(&Job::Lose("a".into()), End::Reported(epoch(report(1, &["a"], &[]), "second")));
    assert_eq!(begun(&board.plan(NOW)), ["run a #2"]);
    assert_eq!(board.plan(NOW), Plan::default());
}

#[test]
fn clocks_that_differ_make_no_loop() {
    let mut board = told(report(1, &[], &[("t", 0)]));
    assert_eq!(begun(&board.plan(NOW)), ["fire at 0"]);
    board.ended(&Job::Fire, End::Reported(report(1, &[], &[("t", 0)])));
    assert_eq!(begun(&board.plan(NOW)), ["fire after 200 ms"]);
    board.ended(&Job::Fire, End::Waited);
    assert_eq!(begun(&board.plan(NOW)), ["fire at 0"]);
    board.ended(&Job::Fire, End::Reported(report(2, &[], &[("u", 0)])));
    assert_eq!(begun(&board.plan(NOW)), ["fire at 0"], "progress costs no time");
}

#[test]
fn it_ends_when_the_workflow_has_ended_and_nothing_is_left() {
    let mut board = told(report(1, &["a"], &[("t", 50)]));
    board.plan(NOW);
    board.learn(closed(2));
    assert!(!board.is_finished());
    assert_eq!(stopped(&board.plan(NOW)), ["run a", "sleep t"]);
    assert!(board.is_finished());

    let signal = Announced { id: "s".into(), kind: String::new(), limit_ms: 0, quick: false };
    let mut board = told(Report { activities: vec![signal], ..closed(2) });
    assert_eq!(begun(&board.plan(NOW)), ["send s now"], "a last word still leaves");
    assert!(!board.is_finished());
    board.ended(&Job::Send("s".into()), End::Reported(closed(2)));
    assert!(board.is_finished());
}

#[test]
fn a_fresh_run_may_take_over_when_only_waits_are_under_way() {
    let mut board = told(report(1, &["a"], &[("t", 50)]));
    assert!(board.is_quiet());
    board.plan(NOW);
    assert!(!board.is_quiet());
    board.ended(&Job::Run("a".into()), End::Reported(report(2, &["b"], &[("t", 50)])));
    assert!(board.is_quiet(), "before the next one begins");
    board.look();
    assert!(!board.is_quiet());
}

#[test]
fn the_store_is_believed_against_earlier_claims_and_not_against_later_news() {
    let mut board = told(report(99, &["made up"], &[]));
    board.plan(NOW);
    board.look();
    assert_eq!(begun(&board.plan(NOW)), ["look now"]);
    board.ended(&Job::Look, End::Reported(report(3, &["a"], &[])));
    let plan = board.plan(NOW);
    assert_eq!((stopped(&plan), begun(&plan)), (vec!["run made up".to_owned()], vec!["run a #1".to_owned()]));
    board.look();
    board.plan(NOW);
    board.learn(report(5, &["b"], &[]));
    board.ended(&Job::Look, End::Reported(report(4, &["a"], &[])));
    let plan = board.plan(NOW);
    assert_eq!((stopped(&plan), begun(&plan)), (vec!["run a".to_owned()], vec!["run b #1".to_owned()]));
}

#[test]
fn another_board_counts_on() {
    let mut board = told(report(1, &["a"], &[("t", 50)]));
    board.plan(NOW);
    for rests in [false, true, false] {
        board.ended(&Job::Run("a".into()), End::Failed);
        board.plan(NOW);
        board.ended(&Job::Lose("a".into()), End::Reported(report(1, &["a"], &[("t", 50)])));
        board.plan(NOW);
        if rests {
            board.ended(&Job::Run("a".into()), End::Waited);
            assert_eq!(begun(&board.plan(NOW)), ["run a #3"]);
        }
    }
    let mut next = Board::default();
    next.resume(board.handover());
    assert_eq!(begun(&next.plan(NOW)), ["run a after 400 ms", "sleep t after 50 ms"]);
    next.ended(&Job::Run("a".into()), End::Waited);
    assert_eq!(begun(&next.plan(NOW)), ["run a #4"]);
}

#[test]
fn a_board_that_is_held_becomes_quiet() {
    let mut board = told(report(1, &["a"], &[]));
    board.plan(NOW);
    board.hold(true);
    board.learn(report(2, &["a", "b"], &[("t", 50)]));
    assert_eq!(begun(&board.plan(NOW)), ["sleep t after 50 ms"]);
    assert!(!board.is_quiet());
    board.ended(&Job::Run("a".into()), End::Reported(report(3, &["b"], &[("t", 50)])));
    assert!(board.is_quiet());
    let mut next = Board::default();
    next.resume(board.handover());
    assert_eq!(begun(&next.plan(NOW)), ["run b #1", "sleep t after 50 ms"]);
}
