//! What every engine must do. Each case is a function over a fresh [`EngineLab`]; [`engine_conformance!`] makes a
//! test of each.
//!
//! The workflow of the suite is a script: signals carry operations, and everything the workflow sees becomes a line in
//! its event log. So a case reads as a conversation, and its outcome is the transcript that the store keeps.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed case")]

mod activities;
mod activity_cases;
mod crash_cases;
mod delivery_cases;
mod lab;
mod life_cases;
mod script;
mod signal_cases;
mod stage;
mod timer_cases;

pub use activity_cases::*;
pub use crash_cases::*;
pub use delivery_cases::*;
pub use lab::{EngineLab, EngineLife, LifePlan, Trouble};
pub use life_cases::*;
pub use signal_cases::*;
pub use timer_cases::*;

/// Makes a test of every case of the suite. The argument is an expression that evaluates to `Some((lab, guard))` with a
/// fresh [`EngineLab`] and whatever has to live as long, or to `None` when what it needs is not installed, which it has
/// then said.
#[macro_export]
macro_rules! engine_conformance {
    ($make:expr) => {
        $crate::engine_conformance! {
            @cases $make,
            a_start_is_prepared_recorded_and_happens_once
            a_repeated_delivery_returns_the_first_receipt
            a_workflow_answers_not_found_refused_and_closed
            parallel_first_deliveries_make_one_workflow
            concurrent_deliveries_are_ordered_and_their_cursors_are_exact
            the_receipt_of_a_delivery_survives_the_process
            an_activity_ends_with_a_result_a_failure_a_time_out_or_a_panic
            a_canceled_activity_is_stopped_and_never_heard_of_again
            closing_stops_what_runs
            timers_fire_in_order_and_never_early
            canceled_and_restarted_timers_do_not_fire_twice
            a_timer_that_was_missed_fires_after_the_restart
            a_crowd_of_timers_fires_across_a_crash
            timers_of_broken_workflows_hold_nobody_up
            a_workflow_signals_another_one_and_a_new_one
            a_signal_without_a_key_arrives_once_across_crashes
            a_trace_reaches_what_follows_from_a_signal
            every_crash_point_leads_to_the_same_end
            a_failing_store_delays_and_loses_nothing
            an_announced_activity_is_rerun_or_reported_after_a_crash
            a_snapshot_and_its_tail_equal_the_whole_history
            an_old_journal_is_replayed
            a_broken_workflow_is_set_aside_alone
            a_drain_records_what_ends_and_cancels_nothing
            a_drain_begins_only_what_could_not_begin_later
            parked_workflows_do_not_stay_in_memory
            a_forgotten_workflow_leaves_nothing_behind
        }
    };
    (@cases $make:expr, $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let Some((lab, _guard)) = $make else { return };
                $crate::conformance::engine::$case(&lab).await;
            }
        )*
    };
}
